// Taken once: a user's fake timers must not freeze a session.

export const setTimeout: typeof globalThis.setTimeout = globalThis.setTimeout
export const clearTimeout: typeof globalThis.clearTimeout = globalThis.clearTimeout
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate

/** Milliseconds on the monotonic clock. */
export const now: () => number = globalThis.performance.now.bind(globalThis.performance)
/** Milliseconds on the clock on the wall. */
export const wall: () => number = globalThis.Date.now

/** A moment on both clocks: the monotonic one stands still while the machine sleeps, and sessions go on ageing. */
export class Moment {
  private readonly mono: number
  private readonly wall: number

  constructor(mono: number = now(), onWall: number = wall()) {
    this.mono = mono
    this.wall = onWall
  }

  isAfter(other: Moment): boolean {
    return this.mono > other.mono
  }

  isWithin(ms: number): boolean {
    return now() - this.mono <= ms && Math.abs(wall() - this.wall) <= ms
  }
}

export const NEVER: Moment = new Moment(-Infinity, -Infinity)
