import { familiesOf, isNested } from '../context.ts'
import type { Call, Grant, Trace, Wanted } from '../trace.ts'

interface Use {
  readonly from: number
  readonly to: number
  readonly weight: number
}

interface Pending {
  readonly call: Call
  readonly want: Wanted
  readonly to: number
}

/** One name: who used it when, and who wanted it. */
export interface Course {
  readonly name: string
  readonly capacity: number
  readonly used: readonly Use[]
  readonly waits: readonly Pending[]
}

export function coursesOf({ calls, grants, endedAt, closes }: Trace): ReadonlyMap<string, Course> {
  const made = new Map<string, Course & { readonly used: Use[]; readonly waits: Pending[] }>()
  const of = (name: string, capacity: number): { readonly used: Use[]; readonly waits: Pending[] } => {
    const known = made.get(name) ?? { name, capacity, used: [], waits: [] }
    made.set(name, known)
    return known
  }
  for (const call of calls) {
    const to = call.to ?? endedAt
    for (const want of call.wants)
      // Of several, one that is shared now may not be when its turn has come.
      if (call.wants.length > 1 || !isNested(call, want))
        of(want.name, want.capacity).waits.push({ call, want, to })
  }
  for (const [root, family] of familiesOf(grants)) {
    const { name, capacity, weight, from, readsFrom } = root
    const { used } = of(name, capacity)
    const to = Math.max(...family.map((grant) => endOf(grant, closes) ?? endedAt))
    // A downgrade that came after a close without release never reached the store.
    const unheard = (leftBy(root, closes) ?? Infinity) <= (readsFrom ?? 0)
    if (readsFrom === undefined || unheard) used.push({ from, to, weight })
    else used.push({ from, to: readsFrom, weight }, { from: readsFrom, to, weight: 1 })
  }
  return made
}

/** Undefined: nobody knows from here when the store forgets it. What was given back before the close, it has forgotten. */
function endOf(grant: Grant, closes: Trace['closes']): number | undefined {
  return (grant.to ?? Infinity) < (leftBy(grant, closes) ?? Infinity) ? grant.to : undefined
}

/** When its process was closed and left what it held to run out. */
function leftBy(grant: Grant, closes: Trace['closes']): number | undefined {
  return closes.find(({ process, options }) => process === grant.process && options.release === false)?.from
}
