import type { Capabilities } from '../../core/contract.ts'

/** A day: the header of a name outlives it by another one, and with it the fence. */
const MAX_TTL = 86_400_000

/**
 * The server counts milliseconds exactly; what sets the limit is the holder, who must hear of a grant and renew it in a
 * third of the lease: below 50 ms that would be less than a pause of its garbage collector.
 */
const MIN_TTL = 50

/**
 * Redis measures leases on its wall clock, replicates after it has answered, and by default writes to disk even later.
 * So a restart, a failover or a clock that jumps can give a lock to a second holder while the first still believes; the
 * second one's token is larger, whatever was lost.
 */
export function capabilitiesOf(
  fencing: 'hybrid' | 'durable',
  wakeups: 'push' | 'poll' = 'push',
): Capabilities {
  return {
    queue: true,
    shared: true,
    permits: true,
    fencing: 'monotonic',
    wakeups,
    reach: 'network',
    minTtl: MIN_TTL,
    maxTtl: MAX_TTL,
    // The scripts read whole milliseconds.
    earlyExpiry: 1,
    guarantees: {
      holderCrash: 'holds',
      holderPause: 'fenced',
      partition: 'holds',
      // Durable fencing stands on a server that forgets nothing.
      storeRestart: fencing === 'durable' ? 'holds' : 'fenced',
      // A counter that was not replicated in time counts the same numbers again.
      failover: fencing === 'durable' ? 'breaks' : 'fenced',
      storeClockJump: 'fenced',
    },
  }
}
