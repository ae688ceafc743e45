/** The time that a quorum goes by. */
export interface QuorumClock {
  /** Milliseconds, never going back. */
  readonly now: () => number
  /** Calls back once, and does not keep the process alive for it. Returns the function that stops it. */
  readonly setTimer: (callback: () => void, ms: number) => () => void
}

// Taken once: a user's fake timers must not hold up a wake-up, make a store forget or keep it from being asked again.
const { performance, setTimeout, clearTimeout } = globalThis

export const systemClock: QuorumClock = {
  now: () => performance.now(),
  setTimer(callback, ms) {
    const timer = setTimeout(callback, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
