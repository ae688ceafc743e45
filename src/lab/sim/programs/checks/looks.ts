import { KNOWN_MS } from '../bounds.ts'
import { answeredInTime, codeOf } from '../place.ts'
import type { Place } from '../place.ts'
import type { Call, Trace } from '../trace.ts'

/** Who holds a name all the time must be seen, and who stands in line for it, too. */
export async function inspected(place: Place, name: string): Promise<void> {
  const { trace, calm, diary, process, world } = place
  const from = world.now()
  const ask = async (): Promise<readonly string[]> => {
    const { holders, waiters } = await process.holdfast.inspect(name)
    const inLine = trace.calls.some(
      (call) => call.from < from - KNOWN_MS && standsInLine(trace, call, name, from - KNOWN_MS),
    )
    if (inLine && waiters.length === 0 && calm && diary === undefined && !trace.wasForced(name))
      trace.found('errors', `inspect() does not show who waits for "${name}"`)
    return holders.length > 0 ? [name] : []
  }
  await looked(place, 'inspect', ask, name)
}

/** Every name that is held all the time is in the list. */
export function listed(place: Place): Promise<void> {
  const { holdfast } = place.process
  return looked(place, 'list', async () => (await holdfast.list({ limit: 1000 })).names)
}

/** What is held all the time must be seen. `only`: of all names, this one was asked about. */
async function looked(
  place: Place,
  what: 'inspect' | 'list',
  ask: () => Promise<readonly string[]>,
  only?: string,
): Promise<void> {
  const { trace, calm, diary, world, index } = place
  const from = world.now()
  try {
    const seen = await ask()
    // Of the stores that scenarios play on some have nothing to list.
    if (diary !== undefined) return
    // Who was warned of a close is not told again when the lease ends.
    const held = trace.grants.filter(
      (grant) => grant.to === undefined && grant.from < from && trace.closeOf(grant.process) === undefined,
    )
    const names = new Set(held.map(({ name }) => name))
    for (const name of names)
      if ((only ?? name) === name && calm && !seen.includes(name) && !trace.wasForced(name))
        trace.found('errors', `${what}() does not show "${name}", which is held`)
  } catch (error) {
    const code = codeOf(error)
    const closed = trace.closeOf(index) !== undefined
    const excused = (code === 'CLOSED' && closed) || (!calm && code !== undefined)
    if (!excused) trace.found('errors', `${what}() said ${String(error)}`)
  }
  answeredInTime(place, what, from)
}

/** It waits for this name alone, somebody of another process is in its way all the time, and none of its own could hand it on. */
function standsInLine(
  trace: Trace,
  { wants, wait, end, abortedAt, process }: Call,
  name: string,
  since: number,
): boolean {
  const [want] = wants
  if (wants.length > 1 || want?.name !== name || want.nesting !== 'none') return false
  const settled = wait === undefined || end !== undefined || abortedAt !== undefined
  if (settled || trace.closeOf(process) !== undefined) return false
  const there = trace.grants.filter((one) => one.name === name && (one.to ?? Infinity) >= since)
  const inItsWay = there.some(
    ({ from, to, weight, readsFrom }) =>
      from < since && to === undefined && readsFrom === undefined && weight + want.weight > want.capacity,
  )
  return inItsWay && !there.some((one) => one.process === process)
}
