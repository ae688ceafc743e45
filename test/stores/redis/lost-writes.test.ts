import { createRequire } from 'node:module'

import type * as NodeRedisModule from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'

import { redisStore } from 'holdfast/redis'
import type { Store } from 'holdfast/store'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCluster, redisCommand } from '../../../scripts/services.mjs'
import { unheard } from '../../../src/core/unheard.ts'

const TERMS = { weight: 1, capacity: 1, ttl: 60_000, patience: 60_000, tokens: 1, owner: 'test' }
const ask = (store: Store, name: string, at: number): void =>
  unheard(store.claim({ ...TERMS, name, id: `a.${at}`, whenBusy: 'try' }, 2_000))
const ROUNDS = 5
const NAMES = Array.from({ length: 30 }, (_, at) => `n${at}`)
const socket = { reconnectStrategy: () => 20 }
const driver = (name: string): typeof NodeRedisModule =>
  createRequire(import.meta.url)(name) as typeof NodeRedisModule

/**
 * Whoever hears that one connection has ended asks by another, which ends in the same moment. Version 5 would write to that one, and take
 * the first answers on the next connection for what it waits for.
 */
describe.skipIf(!available('redis')).each(['redis-4', 'redis', 'redis-6'])(
  'connections of %s that end in one moment',
  (name) => {
    it('are there again, and each answer is one to its question', async () => {
      await using server = await redis()
      const proxy = await FaultProxy.open(server)
      onTestFinished(() => proxy.close())
      const clients = [0, 1, 2].map(() =>
        driver(name).createClient({ url: `redis://127.0.0.1:${proxy.port}`, socket }),
      )
      const stores = clients.map((client) => redisStore(client))
      let asked = 0
      for (const [at, client] of clients.entries()) {
        client.on('error', () => {
          for (const [other, store] of stores.entries()) if (other !== at) ask(store, 'lost', ++asked)
        })
        await client.connect()
      }
      for (let round = 0; round < ROUNDS; round++) {
        for (const client of clients) expect(await client.sendCommand(['ECHO', `${round}`])).toBe(`${round}`)
        proxy.reset()
        await expect.poll(() => clients.some(({ isReady }) => isReady), { interval: 1 }).toBe(false)
        await expect.poll(() => clients.every(({ isReady }) => isReady)).toBe(true)
      }
      expect(asked).toBeGreaterThan(0)
      for (const store of stores) await store.close()
      for (const client of clients) expect(client.listenerCount('reconnecting')).toBe(0)
      for (const client of clients) await client.disconnect()
    })

    it('are there again also if the store is closed in that moment', async () => {
      await using server = await redis()
      const client = driver(name).createClient({ url: server.url, socket })
      client.on('error', () => {})
      await client.connect()
      const store = redisStore(client)
      const lost = new Promise<void>((resolve) => {
        client.once('reconnecting', () => {
          unheard(store.close())
          resolve()
        })
      })
      // The connection is ended in order, so the next one comes about within the same turn.
      await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'normal')
      await lost
      await expect.poll(() => client.isReady).toBe(true)
      for (const event of ['reconnecting', 'connect']) expect(client.listenerCount(event)).toBe(0)
      await client.disconnect()
    })
  },
)

describe.skipIf(!available('redis-cluster')).each(['redis-4', 'redis', 'redis-6'])(
  'connections to a Cluster, of %s, that end in one moment',
  (name) => {
    it('are there again, and each answer is one to its question', async () => {
      const cluster = await redisCluster({ primaries: 3 })
      onTestFinished(() => cluster.stop())
      const proxies = await Promise.all(cluster.nodes.map((node) => FaultProxy.open(node)))
      onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))))
      const client = driver(name).createCluster({
        rootNodes: cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
        nodeAddressMap: (address) => {
          const at = cluster.nodes.findIndex(({ port }) => address.endsWith(`:${port}`))
          return { host: '127.0.0.1', port: proxies[at]?.port ?? 0 }
        },
        defaults: { socket },
      })
      let asked = 0
      // Version 4 says the one, later ones the other.
      for (const event of ['error', 'node-error'])
        client.on(event, () => {
          for (const of of NAMES) ask(store, of, ++asked)
        })
      await client.connect()
      const store = redisStore(client)
      const echo = (of: string, word: string): Promise<unknown> =>
        client.sendCommand(of, false, ['EVAL', 'return ARGV[1]', '1', of, word])
      for (let round = 0; round < ROUNDS; round++) {
        for (const of of NAMES) {
          const word = `${round} ${of}`
          // A connection may be lost only now.
          expect(await echo(of, word).catch(() => echo(of, word))).toBe(word)
        }
        const before = asked
        for (const proxy of proxies) proxy.reset()
        await expect.poll(() => asked, { interval: 1 }).toBeGreaterThan(before)
      }
      await store.close()
      await client.disconnect()
    })
  },
)
