/** Milliseconds, of both clocks. */
export interface Clocks {
  mono(): number
  wall(): number
}

/** A moment on both clocks: the monotonic one stands still while the machine sleeps, and sessions go on ageing. */
export interface Moment {
  readonly mono: number
  readonly wall: number
}

export const NEVER: Moment = { mono: -Infinity, wall: -Infinity }

export function momentOf(clocks: Clocks): Moment {
  return { mono: clocks.mono(), wall: clocks.wall() }
}

/** Not longer ago than that, by both clocks. */
export function isWithin({ mono, wall }: Moment, ms: number, clocks: Clocks): boolean {
  return clocks.mono() - mono <= ms && Math.abs(clocks.wall() - wall) <= ms
}
