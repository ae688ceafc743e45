import { KNOWN_MS } from '../bounds.ts'
import { isNested } from '../context.ts'
import type { Call, Finding, Trace, Wanted } from '../trace.ts'
import { coursesOf } from './courses.ts'
import type { Course } from './courses.ts'

/** A free lock is in the hands of the next waiter after a few messages. */
const HAND_OVER_MS = 60

/**
 * Nobody waits for a free lock: while what is used leaves room for each of those who wait, whoever may be first in line
 * has it after a few messages.
 */
export function progress(trace: Trace, handOver: number = HAND_OVER_MS): readonly Finding[] {
  const courses = [...coursesOf(trace).values()].filter(({ name }) => !trace.wasForced(name))
  return courses.flatMap((course) => {
    const waiting = course.waits.filter(({ call, want }) => call.wait !== undefined && isSingle(call, want))
    return waiting.flatMap(({ call, want, to }) => {
      const free = longestFree(course, call, to, handOver)
      if (free === undefined) return []
      const message = `p${call.process} waited for "${course.name}" (${want.mode}) from ${call.from}, and it was free from ${free} to ${to}`
      return [{ check: 'progress' as const, message }]
    })
  })
}

/** From when on the name was free for everybody who waited, for too long. */
function longestFree(course: Course, call: Call, to: number, handOver: number): number | undefined {
  const moments = new Set([call.from])
  for (const { from, to: end } of course.used) for (const at of [from, end]) moments.add(at)
  for (const { call: other, to: end } of course.waits) for (const at of [other.from, end]) moments.add(at)
  const inside = [...moments].filter((at) => at >= call.from && at < to).sort((a, b) => a - b)
  let since: number | undefined
  for (const at of inside) {
    if (isBlocked(course, at)) since = undefined
    else since ??= at
    const next = inside[inside.indexOf(at) + 1] ?? to
    if (since !== undefined && next - since > handOver) return since
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
  const all = coursesOf(trace)
  return trace.calls.flatMap((call): Finding[] => {
    const [want] = call.wants
    if (call.end !== 'refused' || call.wants.length > 1 || want === undefined || isNested(call, want))
      return []
    const course = all.get(want.name)
    if (course === undefined || call.to === undefined || trace.wasForced(want.name)) return []
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

function isSingle(call: Call, want: Wanted): boolean {
  return call.wants.length === 1 && !isNested(call, want)
}
