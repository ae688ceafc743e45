import type { NameInfo, Store } from '../../../core/contract.ts'
import { memoryNode } from '../../../stores/memory/index.ts'
import type { QuorumClock } from '../../../stores/quorum/clock.ts'
import { quorumStore } from '../../../stores/quorum/store.ts'
import type { Network } from '../network.ts'
import { makeNodes } from './backend.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { RemoteStore } from './remote-store.ts'
import { RemoteVoter } from './remote-voter.ts'

/** Longer than any lease of a run: for so long a node that lost its memory looks on. */
const MAX_TTL = 2500

/** Several nodes in memory, each at the end of a network of its own, and the real quorum store over them. */
export function quorumBackend({ now, settings }: BackendOptions): Backend {
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
      return quorumStore(stores, {
        maxTtl: MAX_TTL,
        nodeTimeout: 50,
        setUp: settings.setUp === 'now' ? 'now' : 'wait',
        clock: clockOf(network),
      })
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

/** That of the process: its quorum goes by no other. */
function clockOf({ env }: Network): QuorumClock {
  return {
    now: () => env.clocks.mono(),
    setTimer(callback, ms) {
      const timer = env.setTimer(callback, ms, true)
      return () => timer.cancel()
    },
  }
}
