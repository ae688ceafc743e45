// oxfmt-ignore: these three are loaded in this order, so that the quorum store gets the clocks of the simulation.
import { onTimeOf, wasTaken } from './borrowed-time.ts'
import { quorumStore } from '../../../stores/quorum/store.ts'
import './returned-time.ts'

import type { NameInfo, Store } from '../../../core/contract.ts'
import { memoryNode } from '../../../stores/memory/index.ts'
import type { Network } from '../network.ts'
import { makeNodes } from './backend.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { RemoteStore } from './remote-store.ts'
import { RemoteVoter } from './remote-voter.ts'

/** Longer than any lease of a run: for so long a node that lost its memory looks on. */
const MAX_TTL = 2500

/** Several nodes in memory, each at the end of a network of its own, and the real quorum store over them. */
export function quorumBackend({ now, settings }: BackendOptions): Backend {
  if (!wasTaken()) throw new Error('the quorum store was loaded before the simulation, and has the real time')
  const nodes = makeNodes(Number(settings.nodes ?? 3), now)
  const servers = nodes.map(({ clocks }) => memoryNode({ now: () => clocks.steady() }))
  // They are known to be new: only who comes back without memory has to look on.
  for (const { votes } of servers) votes.identify(0)
  return {
    nodes,
    connect(network) {
      const stores = servers.map((server, index) =>
        remoteNode(network, nodes[index] as Backend['nodes'][0], server),
      )
      return onOwnTime(
        network,
        quorumStore(stores, {
          maxTtl: MAX_TTL,
          nodeTimeout: 50,
          setUp: settings.setUp === 'now' ? 'now' : 'wait',
        }),
      )
    },
    restarted(index, memory) {
      if (memory === 'lost') servers[index]?.votes.forgetEverything()
    },
    inspect(name): NameInfo {
      const held = servers.map(({ votes }) => votes.inspect(name)).filter((info) => 'id' in info)
      const holders = held.map(({ id, owner, token, expiresIn }) => ({
        id,
        owner,
        weight: 1,
        token,
        expiresIn,
      }))
      return { name, capacity: 1, holders, waiters: [] }
    },
  }
}

function remoteNode(
  network: Network,
  node: Backend['nodes'][0],
  server: ReturnType<typeof memoryNode>,
): Store {
  return Object.assign(new RemoteStore(network, node, () => server), {
    votes: new RemoteVoter(network, node, server.votes),
  })
}

/** A store of a process: whatever it does, it does by that process's clocks. */
function onOwnTime({ env }: Network, store: Store): Store {
  const own = <T>(call: () => T): T => onTimeOf(env, call)
  return {
    kind: store.kind,
    capabilities: store.capabilities,
    claim: (request, timeout) => own(() => store.claim(request, timeout)),
    renew: (requests, timeout) => own(() => store.renew(requests, timeout)),
    release: (claim, next, timeout) => own(() => store.release(claim, next, timeout)),
    withdraw: (claim, timeout) => own(() => store.withdraw(claim, timeout)),
    watch: (session, listener, timeout) => own(() => store.watch(session, listener, timeout)),
    inspect: (name, timeout) => own(() => store.inspect(name, timeout)),
    list: (query, timeout) => own(() => store.list(query, timeout)),
    close: () => own(() => store.close()),
  }
}
