// Taken once: a user's fake timers must not reach locks. Those of Jest are this one's too.
// eslint-disable-next-line eslint/no-restricted-properties
export const nextTick: typeof process.nextTick = process.nextTick.bind(process)
