import type { Hold } from '../holds.ts'
import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

/** One wait for a lock. Milliseconds on any clock that all of them share. */
export interface Wait {
  readonly process: string
  readonly name: string
  readonly from: number
  /** Undefined: it was still waiting when the observation ended. */
  readonly to: number | undefined
}

export interface LivenessOptions {
  /** From then on nothing is in anybody's way. */
  readonly healedAt: number
  /** How long a wait may take from then on. */
  readonly bound: number
  /** When the observation ended. */
  readonly until: number
}

/** Once nothing is in the way any more, every wait comes to its end, and soon. */
export function checkLiveness(
  waits: readonly Wait[],
  { healedAt, bound, until }: LivenessOptions,
): Violation[] {
  return waits.flatMap(({ process, name, from, to }) => {
    const free = Math.max(from, healedAt)
    const took = (to ?? until) - free
    if (took <= bound && (to !== undefined || took < bound)) return []
    const end = to === undefined ? `still waits after ${took} ms` : `waited for ${took} ms`
    return [
      { rule: 'liveness' as const, message: `${process} ${end} for "${name}", of ${bound} at the most` },
    ]
  })
}

export interface HandOverOptions {
  /** Milliseconds from the call of the release to the grant of the next. */
  readonly bound: number
}

const NS_PER_MS = 1_000_000

/**
 * A lock that is given back is in the next waiter's hands at once: woken, not polling. Only for names that one holds alone
 * and for worlds in which nothing is in the way. Leases that ran out do not count: their end is not an event.
 */
export function checkHandOver(holds: readonly Hold[], { bound }: HandOverOptions): Violation[] {
  const alone = holds.filter(({ capacity }) => capacity === 1)
  return [...byName(alone).values()].flatMap((group) =>
    group.flatMap((next, index) => {
      const last = group[index - 1]
      if (last === undefined || next.invoked > last.to) return []
      const took = Number(next.from - last.to) / NS_PER_MS
      if (took <= bound) return []
      const message = `"${next.name}" was free for ${took} ms although ${next.process}#${next.op} waited for it`
      return [{ rule: 'liveness' as const, message }]
    }),
  )
}
