import { group, startAll } from './group.mjs'
import { launch } from './process.mjs'
import { dataArgs, redisPlan } from './redis.mjs'
import { redisCommand, until } from './wire.mjs'

const SLOTS = 16_384
const BUS = 10_000

/** A Redis Cluster; `replicas` is the number for each primary. Returns when every node calls the cluster well. */
export async function redisCluster({
  primaries = 3,
  replicas = 0,
  args = [],
  env,
  nodeTimeout = 2_000,
} = {}) {
  const clusterArgs = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)]
  const plan = redisPlan((at) => [...dataArgs(at), ...clusterArgs, ...args], { alsoPlus: BUS })
  const count = primaries * (1 + replicas)
  const nodes = await startAll(Array.from({ length: count }, () => () => launch(plan, { env })))
  try {
    await join(nodes, primaries)
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()))
    throw error
  }
  return group(nodes, { nodes, primaries: nodes.slice(0, primaries), replicas: nodes.slice(primaries) })
}

/** Done by commands rather than by redis-cli, which is a program more to have and asks questions. */
async function join(nodes, primaries) {
  const [first, ...others] = nodes
  for (const [index, node] of nodes.entries()) {
    // Distinct from the start; otherwise nodes spend their first seconds on settling which number is whose.
    await redisCommand(node, 'CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    if (index < primaries) await redisCommand(node, 'CLUSTER', 'ADDSLOTS', ...slotsOf(index, primaries))
  }
  for (const node of others) await redisCommand(node, 'CLUSTER', 'MEET', first.host, first.port)
  await untilAll(nodes, (info) => info.includes(`cluster_known_nodes:${nodes.length}\r\n`))
  const ids = await Promise.all(nodes.map((node) => redisCommand(node, 'CLUSTER', 'MYID')))
  for (const [index, node] of nodes.slice(primaries).entries()) {
    const primary = ids[index % primaries]
    // A node that has only just met the primary may not know it by its id yet.
    await until(async () => (await redisCommand(node, 'CLUSTER', 'REPLICATE', primary)) === 'OK', {
      what: 'a replica that accepts its primary',
    })
  }
  await untilAll(nodes, (info) => info.includes('cluster_state:ok'))
  await until(() => replicasAreKnown(nodes, nodes.length - primaries), {
    what: 'replicas known to every node',
  })
}

function slotsOf(index, primaries) {
  const from = Math.ceil((SLOTS * index) / primaries)
  const to = Math.ceil((SLOTS * (index + 1)) / primaries)
  return Array.from({ length: to - from }, (_, offset) => from + offset)
}

function untilAll(nodes, holds) {
  return until(
    async () => (await Promise.all(nodes.map((node) => redisCommand(node, 'CLUSTER', 'INFO')))).every(holds),
    { what: 'a cluster whose nodes agree' },
  )
}

/** A client that asks any node for the map must see the replicas, with their links up, or it will not find them later. */
async function replicasAreKnown(nodes, count) {
  const maps = await Promise.all(nodes.map((node) => redisCommand(node, 'CLUSTER', 'NODES')))
  return maps.every((map) => map.split('\n').filter((line) => /slave/.test(line)).length === count)
}
