import type { Capabilities, Store } from '../../core/contract.ts'

const REACH = ['process', 'machine', 'network'] as const

/**
 * No queue: there is no order that all stores would agree on. No semaphores: of five stores that each let two in, three
 * claims find a majority. Readers would be sound, but every reader's token would need a cell of its own.
 */
export function capabilitiesOf(stores: readonly Store[], longest: number): Capabilities {
  const all = stores.map(({ capabilities }) => capabilities)
  const proven = stores.every(({ votes }) => votes !== undefined)
  const reach = Math.min(...all.map((one) => REACH.indexOf(one.reach)))
  return {
    queue: false,
    shared: false,
    permits: false,
    fencing: proven ? 'monotonic' : 'weak',
    wakeups: proven ? 'push' : 'poll',
    reach: REACH[reach] ?? 'process',
    minTtl: Math.max(...all.map(({ minTtl }) => minTtl)),
    maxTtl: Math.min(longest, ...all.map(({ maxTtl }) => maxTtl)),
    earlyExpiry: Math.max(...all.map(({ earlyExpiry }) => earlyExpiry)),
    lateExpiry: Math.max(...all.map(({ lateExpiry = 0 }) => lateExpiry)),
    guarantees: {
      holderCrash: 'holds',
      holderPause: 'fenced',
      partition: 'holds',
      // Holds where a store comes back with everything or with nothing; one with an old snapshot would vote twice.
      storeRestart: 'fenced',
      failover: 'n/a',
      // One clock that jumps frees one store early: it takes that one and bad luck with others.
      storeClockJump: 'fenced',
    },
  }
}
