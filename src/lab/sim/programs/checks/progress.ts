import type { Call, Finding, Grant, Trace, Wanted } from '../trace.ts'

/** A free lock is in the hands of the next waiter after a few messages. */
const HAND_OVER_MS = 60
/** By then everybody knows what was released, withdrawn or queued. */
const KNOWN_MS = 25
/** What a process may do in one turn while others wait. */
const TURN_MS = 4

interface Interval {
  readonly from: number
  readonly to: number
  readonly weight: number
}

/** One name: who used it when, and who wanted it. */
interface Course {
  readonly name: string
  readonly capacity: number
  readonly used: readonly Interval[]
  readonly waits: readonly { readonly call: Call; readonly want: Wanted; readonly to: number }[]
}

/**
 * Nobody waits for a free lock: while what is used leaves room for each of those who wait, whoever may be first in line
 * has it after a few messages.
 */
export function progress(trace: Trace): readonly Finding[] {
  return [...courses(trace).values()].flatMap((course) => {
    const waiting = course.waits.filter(({ call, want }) => call.wait !== undefined && isSingle(call, want))
    return waiting.flatMap(({ call, want, to }) => {
      const free = longestFree(course, call, to)
      if (free === undefined) return []
      const message = `p${call.process} waited for "${course.name}" (${want.mode}) from ${call.from}, and it was free from ${free} to ${to}`
      return [{ check: 'progress' as const, message }]
    })
  })
}

/** From when on the name was free for everybody who waited, for too long. */
function longestFree(course: Course, call: Call, to: number): number | undefined {
  const moments = new Set([call.from])
  for (const { from, to: end } of course.used) for (const at of [from, end]) moments.add(at)
  for (const { call: other, to: end } of course.waits) for (const at of [other.from, end]) moments.add(at)
  const inside = [...moments].filter((at) => at >= call.from && at < to).sort((a, b) => a - b)
  let since: number | undefined
  for (const at of inside) {
    if (isBlocked(course, at)) since = undefined
    else since ??= at
    const next = inside[inside.indexOf(at) + 1] ?? to
    if (since !== undefined && next - since > HAND_OVER_MS) return since
  }
  return undefined
}

/** Somebody wants more than is left. Who takes several locks may hold this one while it waits for another. */
function isBlocked({ used, waits, capacity }: Course, at: number): boolean {
  const inUse = used
    .filter((each) => each.from <= at && at < each.to)
    .reduce((sum, { weight }) => sum + weight, 0)
  return waits.some(({ call, want, to }) => {
    if (call.from > at || at >= to) return false
    return inUse + want.weight > capacity || call.wants.length > 1
  })
}

/** Who asks for a lock that is free, and that nobody else wants, gets it; and readers never refuse readers. */
export function refusals(trace: Trace): readonly Finding[] {
  const all = courses(trace)
  return trace.calls.flatMap((call): Finding[] => {
    const [want] = call.wants
    if (call.end !== 'refused' || call.wants.length > 1 || want === undefined || want.nesting !== 'none')
      return []
    const course = all.get(want.name)
    if (course === undefined || call.to === undefined) return []
    const [from, to] = [call.from - KNOWN_MS, call.to]
    const during = (a: number, b: number): boolean => a <= to && b >= from
    const reads = want.mode === 'read'
    const used = course.used
      .filter((each) => during(each.from, each.to))
      .reduce((sum, { weight }) => sum + weight, 0)
    const wanted = course.waits.some(
      (other) =>
        other.call !== call &&
        during(other.call.from, other.to + KNOWN_MS) &&
        !(reads && other.want.mode === 'read'),
    )
    if (wanted || used + want.weight > course.capacity) return []
    const message = `p${call.process} asked for "${want.name}" (${want.mode}) at ${call.from} and was refused, with nobody in its way`
    return [{ check: reads ? 'readers' : 'refusal', message }]
  })
}

/** No reader who comes more than a turn after a writer queued is let in before it. */
export function bypass(trace: Trace): readonly Finding[] {
  const writers = trace.calls.filter(
    ({ wait, wants }) =>
      wants.length === 1 && wait !== undefined && wants[0]?.mode === 'write' && wants[0].nesting === 'none',
  )
  return writers.flatMap((writer): Finding[] => {
    const name = writer.wants[0]?.name
    const until = writer.to ?? trace.endedAt
    const own = trace.grants.some(
      (grant) =>
        grant.name === name &&
        grant.mode === 'write' &&
        grant.process === writer.process &&
        grant.from >= writer.from &&
        grant.from < until,
    )
    if (own) return []
    const after = writer.from + TURN_MS + KNOWN_MS
    const passed = trace.grants.find(
      (grant) =>
        grant.name === name &&
        grant.mode === 'read' &&
        grant.inside === undefined &&
        grant.call.from > after &&
        grant.from < until,
    )
    if (passed === undefined) return []
    const message = `p${passed.process} reads "${name}" from ${passed.from}, asked at ${passed.call.from}; p${writer.process} waited to write from ${writer.from} to ${until}`
    return [{ check: 'bypass', message }]
  })
}

function isSingle(call: Call, want: Wanted): boolean {
  return call.wants.length === 1 && want.nesting === 'none'
}

function courses({ calls, grants, endedAt, closes }: Trace): ReadonlyMap<string, Course> {
  const made = new Map<
    string,
    { name: string; capacity: number; used: Interval[]; waits: { call: Call; want: Wanted; to: number }[] }
  >()
  const of = (
    name: string,
    capacity: number,
  ): { used: Interval[]; waits: { call: Call; want: Wanted; to: number }[] } => {
    const known = made.get(name) ?? { name, capacity, used: [], waits: [] }
    made.set(name, known)
    return known
  }
  for (const call of calls) {
    const to = call.to ?? endedAt
    for (const want of call.wants)
      if (want.nesting === 'none') of(want.name, want.capacity).waits.push({ call, want, to })
  }
  const runsOut = (grant: Grant): boolean =>
    closes.some(({ process, options }) => process === grant.process && options.release === false)
  for (const grant of grants) {
    const { name, capacity, weight, from } = grant
    // Left to run out: nobody knows from here when the store forgets it. A drain keeps it, whatever its signal says.
    const to = runsOut(grant) || isDrained(grant, closes) ? endedAt : (grant.to ?? endedAt)
    of(name, capacity).used.push({ from, to, weight: grant.inside === undefined ? weight : 0 })
  }
  return made
}

/** Its signal aborted because its Holdfast is being closed, and its owner may go on until the drain is over. */
function isDrained(grant: Grant, closes: Trace['closes']): boolean {
  return (
    grant.lost &&
    closes.some(
      ({ process, from, options }) =>
        process === grant.process && grant.to !== undefined && grant.to >= from && options.drain !== 0,
    )
  )
}
