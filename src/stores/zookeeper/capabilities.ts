import type { Capabilities } from '../../core/contract.ts'
import { PROOF_MS } from './proof.ts'
import { longestTtl } from './zk-session.ts'

/** What the store can do at servers that allow sessions of that length. */
export function capabilitiesFor(maxSessionTimeout: number): Capabilities {
  return {
    queue: true,
    shared: true,
    permits: true,
    fencing: 'monotonic',
    wakeups: 'push',
    reach: 'network',
    minTtl: 100,
    maxTtl: longestTtl(maxSessionTimeout),
    earlyExpiry: PROOF_MS,
    guarantees: {
      holderCrash: 'holds',
      holderPause: 'fenced',
      partition: 'holds',
      storeRestart: 'holds',
      failover: 'holds',
      // Sessions are measured by the servers' monotonic clocks.
      storeClockJump: 'holds',
    },
  }
}
