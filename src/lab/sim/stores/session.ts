import type { NameInfo } from '../../../core/contract.ts'
import { makeNode } from './backend.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { SessionServer } from './session-server.ts'
import { SessionStore } from './session-store.ts'

export function sessionBackend({ now, later }: BackendOptions): Backend {
  const node = makeNode(0, now)
  const server = new SessionServer(node, later)
  return {
    nodes: [node],
    connect: (network) => new SessionStore(network, node, server),
    restarted: () => server.restart(),
    inspect: (name): NameInfo => ({
      name,
      capacity: 1,
      holders: server.children(name).map((id) => ({ id, owner: id, weight: 1, expiresIn: 0 })),
      waiters: [],
    }),
  }
}
