/** The size of a program's world, in milliseconds. */
export const PATIENCE_MS = 300
export const REQUEST_TIMEOUT_MS = 200
/** Where a store lets nobody listen, and may take so long to say so. */
export const DEAF_TIMEOUT_MS = 2000
/** When a request is given up that a store has forgotten: twice that and a second, looked at twice a second. */
export const SILENT_MS = 2000
/** Nothing is in anybody's way from then on. */
export const HEALED_AT = 800
/** By then everybody knows what was released, withdrawn or queued. */
export const KNOWN_MS = 25
/** How long the tasks have. */
export const LIMIT_MS = 9000
/** The longest that a close takes: its drain, and what it gives the store. */
export const CLOSED_MS = 16_000
export const LONGEST_TTL = 1500
