import type { Capabilities } from '../../core/contract.ts'

export const capabilities: Capabilities = {
  queue: false,
  shared: false,
  permits: false,
  fencing: 'weak',
  wakeups: 'poll',
  reach: 'network',
  minTtl: 2000,
  maxTtl: 2 ** 31 - 1,
  // The server counts whole seconds; see `secondsFor`.
  earlyExpiry: 1000,
  lateExpiry: 4000,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'holds',
    // As far as the clients' clocks agree: the counters are gone too, and begin again at the time of whoever asks first.
    storeRestart: 'fenced',
    failover: 'n/a',
    storeClockJump: 'holds',
  },
}

/**
 * What is added to every ttl, so that an item never ends more than `earlyExpiry` before it: server-clock.ts has the sum.
 * Rounding up alone would not do. Measured: the timer that moves the server's clock runs a millisecond late every second,
 * so that the clock jumps by two every quarter of an hour, and what was stored just before that lives almost two seconds
 * less than was asked for.
 */
export const ADDED_S = 3

export function secondsFor(ttl: number): number {
  return Math.ceil(ttl / 1000) + ADDED_S
}
