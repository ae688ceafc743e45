import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

import { PATIENCE, TTL } from './settings.mjs'

// By path, not by name: this workspace is not the package, and what is measured must be what was just built.
// BENCH_DIST names another build, for a comparison of before and after.
const DIST =
  process.env.BENCH_DIST === undefined
    ? new URL('../../dist/', import.meta.url)
    : pathToFileURL(`${resolve(process.env.BENCH_DIST)}/`)

const load = (entry) =>
  import(new URL(entry, DIST).href).catch((cause) => {
    throw new Error(`dist/${entry} cannot be loaded; run \`npm run build\` first`, { cause })
  })

const STORES = {
  memory: async () => {
    const { memoryStore } = await load('stores/memory/index.js')
    return { store: memoryStore(), close: () => {} }
  },
  redis: async (driver, { url }) => {
    const { redisStore } = await load('stores/redis/index.js')
    // Only here: a measurement of memory must not carry two drivers that it never uses.
    const { DRIVERS } = await import('./drivers.mjs')
    const { client, close } = await DRIVERS[driver](url)
    return { store: redisStore(client), close }
  },
}

const entry = (id, store, label, config, options, more = {}) => ({
  id,
  family: 'holdfast',
  renews: true,
  label,
  store,
  role: 'ours',
  config,
  missing: existsSync(new URL(`stores/${store}/index.js`, DIST))
    ? undefined
    : `the ${store} store is not built`,
  async open(endpoint) {
    const { Holdfast } = await load('index.js')
    const { store: backend, close } = await STORES[store](more.driver ?? 'ioredis', endpoint)
    return session(() => new Holdfast(backend, { wait: PATIENCE, ...options }), backend, close)
  },
  ...more,
})

const STRICT = { fair: 'strict' }

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
]

function session(make, store, closeDriver) {
  const holdfast = make()
  const others = []
  const handle = (lock) => ({ acquire: () => lock.acquire(), release: (lease) => lease.release() })
  return {
    lock: (name, ttl = TTL) => handle(holdfast.mutex(name, { ttl })),
    /** A lock as another process would see it: through a session of its own. */
    strangersLock(name) {
      const stranger = make()
      others.push(stranger)
      return handle(stranger.mutex(name, { ttl: TTL }))
    },
    async hold(name, ttl) {
      const lease = await holdfast.mutex(name, { ttl }).acquire()
      return { held: () => lease.held, drop: () => lease.release() }
    },
    shared(name) {
      const { read, write } = holdfast.readWriteLock(name, { ttl: TTL })
      return { read: handle(read), write: handle(write) }
    },
    async close() {
      await Promise.all([holdfast, ...others].map((one) => one.close()))
      await store.close()
      closeDriver()
    },
  }
}
