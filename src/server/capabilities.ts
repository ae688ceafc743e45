import type { Capabilities, Store } from '../core/contract.ts'
import type { Limits } from './limits.ts'
import { isLocal } from './listen.ts'
import type { ListenAt } from './listen.ts'

/** What a client of the server can count on: the store's capabilities, as far as the server lets them through. */
export function capabilitiesOf({ capabilities }: Store, limits: Limits, at: ListenAt): Capabilities {
  // It ends with the server, which is no end of its clients.
  const ends = { partition: 'holds', storeRestart: 'breaks' } as const
  const { guarantees } = capabilities
  return {
    ...capabilities,
    guarantees: capabilities.reach === 'process' ? { ...guarantees, ...ends } : guarantees,
    reach: isLocal(at) ? 'machine' : 'network',
    minTtl: Math.max(capabilities.minTtl, limits.minTtl),
    maxTtl: Math.min(capabilities.maxTtl, limits.maxTtl),
  }
}
