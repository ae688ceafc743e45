import type { Capabilities } from '../../core/contract.ts'

/** What a lock server with its embedded store can do: assumed until the server says what it really has. */
export const assumedCapabilities: Capabilities = {
  queue: true,
  shared: true,
  permits: true,
  fencing: 'monotonic',
  wakeups: 'push',
  reach: 'network',
  minTtl: 100,
  maxTtl: 3_600_000,
  earlyExpiry: 0,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'holds',
    storeRestart: 'holds',
    failover: 'n/a',
    storeClockJump: 'holds',
  },
}
