// The other libraries, each at its documented best, and what the lab has to know of it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { ZooKeeper } from '../../dist/stores/zookeeper/client/index.js'
import { redisCommand } from '../../scripts/services.mjs'

const bench = createRequire(new URL('../../bench/package.json', import.meta.url))
/** As the benchmark's workspace has it. */
const versionOf = (name) => bench('./package.json').dependencies[name]
const javaVersion = (kind) => {
  const page = readFileSync(new URL(`java/${kind}.xml`, import.meta.url), 'utf8')
  return /<artifactId>(?:redisson|curator-recipes)<\/artifactId>\s*<version>([^<]+)/.exec(page)?.[1]
}

/** Nobody's promises are judged here: what is seen is what is told. */
const GUARANTEES = {
  holderCrash: 'holds',
  holderPause: 'fenced',
  partition: 'holds',
  storeRestart: 'fenced',
  failover: 'fenced',
  storeClockJump: 'fenced',
}

const capabilities = (more) => ({
  queue: false,
  shared: false,
  permits: false,
  fencing: 'weak',
  wakeups: 'poll',
  reach: 'network',
  minTtl: 1,
  maxTtl: 2 ** 31 - 1,
  earlyExpiry: 0,
  guarantees: GUARANTEES,
  ...more,
})

/** Whether a server has a key. */
async function hasKey(server, key) {
  try {
    return (await redisCommand({ ...server, timeout: 1000 }, 'EXISTS', key)) === 1
  } catch {
    return undefined
  }
}

const state = (held) => (held === undefined ? undefined : held ? 'held' : 'free')

const onRedis =
  (keyOf) =>
  ({ server }) => ({
    inspect: async (name) => state(await hasKey(server, keyOf(name))),
  })

/** Held where most of the servers have it. */
const onMost = ({ server: { nodes } }) => ({
  async inspect(name) {
    const all = await Promise.all(nodes.map((node) => hasKey(node, name)))
    const seen = all.filter((one) => one !== undefined)
    return seen.length <= nodes.length / 2 ? undefined : state(seen.filter(Boolean).length > nodes.length / 2)
  },
})

/** A node below the lock's own is somebody who has it or waits for it. */
function onZooKeeper({ server: { host, port } }) {
  const zookeeper = new ZooKeeper(`${host}:${port}`)
  return {
    async inspect(name) {
      try {
        const { children } = await zookeeper.getChildren(`/lab/${encodeURIComponent(name)}`)
        return state(children.length > 0)
      } catch (error) {
        return error.code === 'NO_NODE' ? 'free' : undefined
      }
    },
    close: () => zookeeper.close(),
  }
}

const adapter = (file, name = 'open') => ({ url: new URL(file, import.meta.url).href, export: name })

/**
 * `stage`: where it is played. `leaveOut`: faults that do not touch what does its work. `told`: its settings, for the table.
 */
export const OTHERS = [
  {
    id: 'redlock',
    label: `redlock ${versionOf('redlock')}`,
    told: 'five Redis servers; `using()`, which extends by itself; default settings, as many retries as the wait needs',
    stage: 'quorum',
    library: adapter('redlock.mjs'),
    capabilities: capabilities(),
    tokens: false,
    backend: onMost,
  },
  {
    id: 'redis-semaphore',
    label: `redis-semaphore ${versionOf('redis-semaphore')}`,
    told: '`Mutex`; refreshed at 0.8 of its time (default), asked for every 10 ms (default), `onLockLost` listened to',
    stage: 'redis',
    library: adapter('redis-semaphore.mjs'),
    capabilities: capabilities(),
    tokens: false,
    backend: onRedis((name) => `mutex:${name}`),
  },
  {
    id: 'verrou',
    label: `@verrou/core ${versionOf('@verrou/core')}`,
    told: 'Redis; default retries; `extend()` called every third of its time, for it renews nothing by itself; `isExpired()` asked',
    stage: 'redis',
    library: adapter('verrou.mjs'),
    capabilities: capabilities(),
    tokens: false,
    backend: onRedis((name) => name),
  },
  {
    id: 'redisson',
    label: `Redisson ${javaVersion('redisson')}`,
    told: '`RFencedLock`, renewed by the watchdog; `isHeldByCurrentThread()` asked before a write',
    stage: 'redis',
    java: 'redisson',
    library: adapter('java.mjs', 'redisson'),
    capabilities: capabilities({ wakeups: 'push' }),
    tokens: true,
    leaveOut: ['block'],
    backend: onRedis((name) => encodeURIComponent(name)),
  },
  {
    id: 'curator',
    label: `Curator ${javaVersion('curator')}`,
    told: '`InterProcessMutex` on ZooKeeper; a section ends when the connection is suspended or lost, as its notes demand',
    stage: 'zookeeper',
    java: 'curator',
    library: adapter('java.mjs', 'curator'),
    capabilities: capabilities({ queue: true, wakeups: 'push' }),
    tokens: false,
    leaveOut: ['block'],
    backend: onZooKeeper,
  },
  ...['quorum', 'redis', 'zookeeper'].map((stage) => ({
    id: `holdfast-${stage}`,
    label: `holdfast (${stage === 'quorum' ? 'Redlock' : stage === 'redis' ? 'Redis' : 'ZooKeeper'})`,
    told: 'default settings; every kind of lock that the store has',
    stage,
  })),
]
