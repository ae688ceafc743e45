// Taken once: a user's fake timers must not freeze a session.

export const setTimeout: typeof globalThis.setTimeout = globalThis.setTimeout
export const clearTimeout: typeof globalThis.clearTimeout = globalThis.clearTimeout
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate

/** Milliseconds on the monotonic clock. */
export const now: () => number = globalThis.performance.now.bind(globalThis.performance)
/** Milliseconds on the clock on the wall. */
export const wall: () => number = globalThis.Date.now
