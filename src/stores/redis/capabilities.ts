import type { Capabilities } from '../../core/contract.ts'
import type { Link } from './link.ts'

/** A day: the header of a name outlives it by another one, and with it the fence. */
const MAX_TTL = 86_400_000

/**
 * Below this a lease would end before its holder has heard of it on a busy machine: two round trips and a pause of the
 * event loop. The server itself counts milliseconds exactly.
 */
const MIN_TTL = 50

export function capabilitiesOf(_link: Link): Capabilities {
  return {
    queue: true,
    shared: true,
    permits: true,
    fencing: 'monotonic',
    wakeups: 'push',
    reach: 'network',
    minTtl: MIN_TTL,
    maxTtl: MAX_TTL,
    // The scripts read milliseconds: a lease may end one early.
    earlyExpiry: 1,
    guarantees: {
      holderCrash: 'holds',
      holderPause: 'fenced',
      partition: 'holds',
      storeRestart: 'fenced',
      failover: 'fenced',
      storeClockJump: 'fenced',
    },
  }
}
