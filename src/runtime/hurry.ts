/**
 * What a store says by itself (it was granted, it is free, ask again in a millisecond) is a reason to ask before the time. A store that keeps
 * saying so and then has nothing to give would be asked without end. So hints are followed at once, but no more than these.
 */

const PER_SECOND = 100
const AT_ONCE = 50

const INTERVAL_MS = 1000 / PER_SECOND

/** What hints are about. */
export interface Hurried {
  /** Hints would be used up until then if all of them had come as slowly as they may. */
  hurriedUntil: number
}

/** Whether one more hint may be followed now. */
export function mayHurry(about: Hurried, now: number): boolean {
  const from = Math.max(about.hurriedUntil, now)
  if (from - now >= AT_ONCE * INTERVAL_MS) return false
  about.hurriedUntil = from + INTERVAL_MS
  return true
}

/** One takes the place of another, and may ask as often as that. */
export function goOnHurrying(one: Hurried, another: Hurried): void {
  one.hurriedUntil = another.hurriedUntil
}
