import { isBuilt, load } from './dist.mjs'
import { openStore } from './holdfast-stores.mjs'
import { PATIENCE, TTL, ZOOKEEPER_TTL } from './settings.mjs'
import { sqliteNode } from './sqlite-node.mjs'

const entry = (id, store, label, config, options, more = {}) => ({
  id,
  family: 'holdfast',
  renews: true,
  label,
  store,
  role: 'ours',
  config,
  missing: isBuilt(`stores/${store}/index.js`) ? undefined : `the ${store} store is not built`,
  async open(endpoint) {
    const { Holdfast } = await load('index.js')
    const connect = () => openStore(store, endpoint, more.driver ?? 'ioredis')
    const { store: backend, close } = await connect()
    const make = (on = backend) => new Holdfast(on, { wait: PATIENCE, ...options })
    return { ...session(make, backend, close), clients: (count) => clients(count, connect, make) }
  },
  ...more,
})

const STRICT = { fair: 'strict' }

/** Taking turns, and with every section a hand-over. */
const both = (store, driver, more = {}) => [
  entry(`holdfast-${store}`, store, 'holdfast', `default, ${driver}`, {}, more),
  entry(`holdfast-${store}-strict`, store, 'holdfast, strict', `fair: 'strict', ${driver}`, STRICT, {
    waitingOnly: true,
    ...more,
  }),
]

/** @type {import('./index.mjs').Contestant[]} */
export const holdfast = [
  entry('holdfast-memory', 'memory', 'holdfast', 'default', {}, { growth: true }),
  entry('holdfast-memory-strict', 'memory', 'holdfast, strict', "fair: 'strict'", STRICT, {
    waitingOnly: true,
  }),
  entry('holdfast-redis', 'redis', 'holdfast', 'default, ioredis', {}, { growth: true }),
  entry('holdfast-redis-strict', 'redis', 'holdfast, strict', "fair: 'strict', ioredis", STRICT, {
    waitingOnly: true,
    growth: true,
  }),
  entry(
    'holdfast-node-redis',
    'redis',
    'holdfast (node-redis)',
    'default, node-redis',
    {},
    {
      driver: 'node-redis',
      secondary: true,
    },
  ),
  ...both('mysql', 'mysql2'),
  ...both('postgres', 'pg'),
  ...both('sqlite', 'node:sqlite', sqliteNode),
  ...both('zookeeper', 'its own client'),
  entry('holdfast-memcached', 'memcached', 'holdfast', 'default', {}),
  ...both('holdfast', 'lock server of its own'),
]

/** A session of ZooKeeper lasts no longer than its servers allow. */
const ttlOn = ({ kind }) => (kind === 'zookeeper' ? ZOOKEEPER_TTL : TTL)

const handleOf = (lock) => ({ acquire: () => lock.acquire(), release: (lease) => lease.release() })

function session(make, store, closeDriver) {
  const holdfast = make()
  const others = []
  return {
    holdfast,
    lock: (name, ttl = ttlOn(store)) => handleOf(holdfast.mutex(name, { ttl })),
    /** A lock as another process would see it: through a session of its own. */
    strangersLock(name) {
      const stranger = make()
      others.push(stranger)
      return handleOf(stranger.mutex(name, { ttl: TTL }))
    },
    async hold(name, ttl) {
      const lease = await holdfast.mutex(name, { ttl }).acquire()
      return { held: () => lease.held, drop: () => lease.release() }
    },
    shared(name) {
      const { read, write } = holdfast.readWriteLock(name, { ttl: TTL })
      return { read: handleOf(read), write: handleOf(write) }
    },
    async close() {
      await Promise.all([holdfast, ...others].map((one) => one.close()))
      await store.close()
      await closeDriver()
    },
  }
}

/** As many processes would be: each with a connection of its own. */
async function clients(count, connect, make) {
  const all = []
  // One after the other in groups: a thousand connections at once would measure how they are made.
  while (all.length < count) {
    const group = Array.from({ length: Math.min(50, count - all.length) }, connect)
    all.push(
      ...(await Promise.all(group)).map(({ store, close }) => ({ holdfast: make(store), store, close })),
    )
  }
  return {
    locks: (name) => all.map(({ holdfast, store }) => handleOf(holdfast.mutex(name, { ttl: ttlOn(store) }))),
    close: () =>
      Promise.all(
        all.map(async ({ holdfast, store, close }) => {
          await holdfast.close()
          await store.close()
          await close()
        }),
      ),
  }
}
