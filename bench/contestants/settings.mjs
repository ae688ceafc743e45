/** Milliseconds; given to every library that asks for one, so that none renews or expires while a round lasts. */
export const TTL = 30_000

/** How long a library in its patient configuration may wait for one lock. No round is as long. */
export const PATIENCE = 60_000

export const ZOOKEEPER_TTL = 20_000
