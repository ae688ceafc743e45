/**
 * Until when a client may believe in a grant. All times are milliseconds on one clock of the client's.
 */

/** Clock rates of client and store may differ by this much. */
const DRIFT = 0.01
/** Timers and clock readings are only this exact. */
const RESOLUTION_MS = 2

/** Counted from *before* the request left: the store cannot have started its ttl earlier than that. */
export function validUntil(sentAt: number, ttl: number, earlyExpiry = 0): number {
  return sentAt + ttl - (ttl * DRIFT + RESOLUTION_MS + earlyExpiry)
}

/** The shortest ttl that leaves anything to believe in. */
export function leastTtl({
  minTtl,
  earlyExpiry,
}: {
  readonly minTtl: number
  readonly earlyExpiry: number
}): number {
  return Math.max(minTtl, Math.floor((RESOLUTION_MS + earlyExpiry) / (1 - DRIFT)) + 1)
}

/**
 * The end of validity after a renewal was confirmed. One that arrives after the end never brings a lost lease back,
 * and one that was sent before another never shortens what the later one gave.
 */
export function extended(current: number, now: number, renewed: number): number {
  return now < current && renewed > current ? renewed : current
}

/** A renewal is due after a third of the time: two more tries fit in before the end. */
export function renewalDue(sentAt: number, lasts: number): number {
  return sentAt + lasts / 3
}

/** A waiter that is granted its lock while it does not ask has it for so long at first: if it is gone, the queue stands no longer. */
export function pickUpTime({ ttl, patience }: { readonly ttl: number; readonly patience: number }): number {
  return Math.min(ttl, patience)
}
