// Redlock on five servers: ours, those that vote too, and what a careful person would send by hand.
import { randomUUID } from 'node:crypto'

import { Redlock as Sesamecare } from '@sesamecare-oss/redlock'
import Redlock from 'redlock'

import { isBuilt, load } from './dist.mjs'
import { openIoredis } from './drivers.mjs'
import { optional } from './optional.mjs'
import { PATIENCE, TTL } from './settings.mjs'
import { vote } from './vote.mjs'

const universal = await optional('redlock-universal', 'it needs Node 22 or newer')
const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
const PATIENT = { retryCount: -1, retryDelay: 10, retryJitter: 10 }

/** One connection to each of the servers behind a redlock:// URL. */
async function connect({ urls }) {
  const hosts = urls.redlock.replace('redlock://', '').split(',')
  const open = await Promise.all(hosts.map((host) => openIoredis(`redis://${host}`)))
  return { clients: open.map(({ client }) => client), close: () => open.forEach(({ close }) => close()) }
}

const five = (entry) => ({ store: 'redlock', only: ['w7'], ...entry })

/** For races between clients: a session that can say how often the library asked for what it holds. */
const counted = { only: ['w17'], attempts: 'counted' }

const peer = (id, name, make, more = {}) =>
  five({
    id,
    family: name === 'redlock' ? 'redlock' : 'sesamecare',
    package: name,
    label: name === 'redlock' ? 'redlock 5' : name,
    role: 'peer',
    config: 'retryCount -1, retryDelay 10, retryJitter 10',
    async open(endpoint) {
      const { clients, close } = await connect(endpoint)
      const redlock = make(clients)
      // Every busy attempt is an event here; unheard it would be thrown.
      redlock.on('error', () => {})
      return {
        ...vote(redlock, TTL),
        connections: clients,
        attemptsOf: (held) => held.attempts.length,
        close,
      }
    },
    ...more,
  })

const ours = (id, open, more = {}) =>
  five({
    id,
    family: 'holdfast',
    label: 'holdfast',
    role: 'ours',
    config: 'default, ioredis',
    missing: isBuilt('stores/quorum/index.js') ? undefined : 'the quorum store is not built',
    open,
    ...more,
  })

async function openOurs(endpoint) {
  const { Holdfast } = await load('index.js')
  const { quorumStore } = await load('stores/quorum/index.js')
  const { redisStore } = await load('stores/redis/index.js')
  const { clients, close } = await connect(endpoint)
  const stores = clients.map((client) => redisStore(client))
  const store = quorumStore(stores, { setUp: 'now' })
  const holdfast = new Holdfast(store, { wait: PATIENCE })
  const session = {
    connections: clients,
    lock(name, ttl = TTL) {
      const lock = holdfast.mutex(name, { ttl })
      return { acquire: () => lock.acquire(), release: (lease) => lease.release() }
    },
    async close() {
      await holdfast.close()
      await store.close()
      close()
    },
  }
  return { store, session }
}

/** @type {import('./index.mjs').Contestant[]} */
export const quorum = [
  five({
    id: 'raw-redlock',
    family: 'raw',
    label: 'raw limit (ioredis)',
    role: 'limit',
    config: 'five SET NX PX at once, then five EVALSHA compare-and-delete',
    async open(endpoint) {
      const { clients, close } = await connect(endpoint)
      const [sha] = await Promise.all(clients.map((client) => client.script('LOAD', RELEASE)))
      return {
        lock(name, ttl = TTL) {
          let id = ''
          return {
            async acquire() {
              id = randomUUID()
              await Promise.all(clients.map((client) => client.set(name, id, 'PX', ttl, 'NX')))
            },
            release: () => Promise.all(clients.map((client) => client.evalsha(sha, 1, name, id))),
          }
        },
        close,
      }
    },
  }),
  ours('holdfast-redlock', async (endpoint) => (await openOurs(endpoint)).session),
  ours(
    'holdfast-split',
    async (endpoint) => {
      const { store, session } = await openOurs(endpoint)
      // The client holds one name after the other: what it asked since the last one was for this one.
      let attempts = 0
      const claim = store.claim.bind(store)
      store.claim = (request, timeout) => {
        attempts++
        return claim(request, timeout)
      }
      const attemptsOf = () => {
        const made = attempts
        attempts = 0
        return made
      }
      return { ...session, attemptsOf }
    },
    counted,
  ),
  peer('redlock-split', 'redlock', (clients) => new Redlock(clients), {
    config: 'default',
    ...counted,
  }),
  peer('sesamecare-split', '@sesamecare-oss/redlock', (clients) => new Sesamecare(clients), {
    config: 'default',
    ...counted,
  }),
  peer('redlock-five', 'redlock', (clients) => new Redlock(clients, PATIENT)),
  peer('sesamecare-five', '@sesamecare-oss/redlock', (clients) => new Sesamecare(clients, PATIENT)),
  five({
    id: 'redlock-universal-five',
    family: 'redlock-universal',
    package: 'redlock-universal',
    missing: universal.missing,
    label: 'redlock-universal',
    role: 'peer',
    config: 'retryAttempts 10,000, retryDelay 10',
    async open(endpoint) {
      const { createRedlock, IoredisAdapter } = universal.module
      const { clients, close } = await connect(endpoint)
      const adapters = clients.map((client) => new IoredisAdapter(client))
      return {
        lock(name, ttl = TTL) {
          const lock = createRedlock({ adapters, key: name, ttl, retryAttempts: 10_000, retryDelay: 10 })
          return { acquire: () => lock.acquire(), release: (handle) => lock.release(handle) }
        },
        close,
      }
    },
  }),
]
