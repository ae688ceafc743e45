/** The size of a run. */
export const PROCESSES = 3
/** Sections that a task goes through at the most. In a calm world everybody gets through all of them. */
export const ROUNDS = { stormy: 12, calm: 8 }
/** Milliseconds in which faults happen. */
export const CHAOS_MS = 6000
/** How long everybody may need once nothing is in the way any more: dead holders, ghosts, and the line before one. */
export const BOUND_MS = 30_000
