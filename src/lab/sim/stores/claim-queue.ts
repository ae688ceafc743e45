import type { NameInfo, Store } from '../../../core/contract.ts'
import { memoryStore } from '../../../stores/memory/index.ts'
import { RemoteStore } from './remote-store.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { makeNode } from './backend.ts'

/**
 * The rule of the claim queue on a server of its own, which measures leases by its monotonic clock: what every store
 * that keeps its word does. Without its memory it only knows its wall clock.
 */
export function claimQueueBackend({ now, settings, watched = (store) => store }: BackendOptions): Backend {
  const node = makeNode(0, now)
  const fresh = (): Store => watched(memoryStore({ now: () => node.clocks.steady() }))
  let server = fresh()
  return {
    nodes: [node],
    connect: (network) => new RemoteStore(network, node, () => server),
    restarted(_, memory) {
      // The connections are gone in any case. Closing the memory store is done at once.
      Promise.resolve(server.close()).catch(() => undefined)
      if (memory === 'lost' && settings.memory !== 'kept') server = fresh()
    },
    inspect: (name) => server.inspect(name, 0) as NameInfo,
  }
}
