import { platform } from '#platform'

import { inBackground } from './background.ts'

/**
 * Everything the runtime takes from the world: clocks, timers, randomness. A simulation passes its own.
 */
export interface Env {
  /** Milliseconds on the monotonic clock. On Linux it stands still while the machine sleeps. */
  mono(): number
  /** Milliseconds since boot, sleep included. May be coarse. */
  boot(): number
  /** Milliseconds of wall time. May jump. */
  wall(): number
  /** Calls back once, after at least about `ms`. `background`: does not keep the process alive. */
  setTimer(callback: () => void, ms: number, background: boolean): Timer
  /** Calls back once, after the event loop has looked for input. */
  defer(callback: () => void): void
  /** 128 random bits as text without `.`. */
  randomId(): string
  /** 0 ≤ x < 1, for jitter. */
  random(): number
}

export interface Timer {
  cancel(): void
  /** Whether it keeps the process alive from now on. A world without that question leaves it out. */
  keepAlive?(on: boolean): void
}

// Taken once: a user's fake timers must not freeze a lease.
const { performance, Date } = globalThis
const now = performance.now.bind(performance)

export const systemEnv: Env = {
  mono: now,
  boot: platform.bootTime,
  wall: Date.now,
  setTimer(callback, ms, background) {
    const timeout = inBackground(() => platform.setTimeout(callback, ms))
    if (background) timeout.unref()
    return {
      cancel: () => platform.clearTimeout(timeout),
      keepAlive: (on) => void (on ? timeout.ref() : timeout.unref()),
    }
  },
  defer: (callback) => inBackground(() => platform.setImmediate(callback)),
  randomId: platform.randomId,
  random: platform.random,
}
