import type { At, RunRecord } from '../record.ts'

/** The part of a run that is drawn. */
export interface Window {
  readonly from: At
  readonly to: At
  /** Events of the whole run, and of this part. */
  readonly all: number
  readonly shown: number
}

/** More than this, and a picture is a smear. */
export const MOST_EVENTS = 1200

/** The whole run if it fits; else what lies around its first violation, or its first fault, or its beginning. */
export function windowOf(
  { timeline, violations, faults, durationMs }: RunRecord,
  most: number = MOST_EVENTS,
): Window {
  const all = timeline.length
  const end = Math.max(durationMs, timeline.at(-1)?.at ?? 0)
  if (all <= most) return { from: 0, to: end, all, shown: all }
  const focus = violations.find(({ at }) => at !== undefined)?.at ?? faults[0]?.at ?? 0
  const index = timeline.findIndex(({ at }) => at >= focus)
  const first = Math.min(Math.max(0, index - Math.floor(most / 3)), all - most)
  const from = first === 0 ? 0 : (timeline[first]?.at ?? 0)
  const to = first + most >= all ? end : (timeline[first + most - 1]?.at ?? end)
  return { from, to, all, shown: most }
}
