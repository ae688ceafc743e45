import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'
import type * as NodeRedisModule from 'redis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { Holdfast } from 'holdfast'
import type { HoldfastOptions } from 'holdfast'
import { fencedWrite, openRedisStore, redisStore } from 'holdfast/redis'
import type { OpenRedisOptions } from 'holdfast/redis'

import { available, redis, redisCommand, sentinel } from '../../../scripts/services.mjs'
import type { SentinelGroup, Server } from '../../../scripts/services.mjs'
import { driverFor } from '../../../src/stores/redis/client/index.ts'
import { withNodeRedis } from '../../../src/stores/redis/client/of-url.ts'
import type { NodeRedis } from '../../../src/stores/redis/client/of-url.ts'
import { storeOn } from '../../../src/stores/redis/redis-store.ts'
import { parseUrl } from '../../../src/stores/redis/url.ts'
import { Crew } from './crew.ts'

const DRIVERS = ['ioredis', 'redis'] as const

describe.skipIf(!available('sentinel')).each(DRIVERS)('a Sentinel group, through %s', (driver) => {
  let group: SentinelGroup
  const opened: Holdfast[] = []
  const url = (): string =>
    `redis+sentinel://${group.sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}/${group.name}`
  const open = async (
    options: HoldfastOptions = {},
    redisOptions: OpenRedisOptions = {},
  ): Promise<Holdfast> => {
    const store = await openRedisStore(url(), { driver, ...redisOptions })
    const holdfast = new Holdfast(store, { ttl: 10_000, requestTimeout: 500, ...options })
    opened.push(holdfast)
    return holdfast
  }
  const primary = async (): Promise<Server> => {
    const node = await group.primary()
    if (node === undefined) throw new Error('there is no primary')
    return node
  }
  const failover = async (): Promise<void> => {
    const old = await primary()
    await old.kill('SIGKILL')
    await expect
      .poll(async () => (await group.primary())?.port, { timeout: 20_000, interval: 50 })
      .not.toBe(old.port)
  }

  beforeEach(async () => void (group = await sentinel({ replicas: 2, downAfter: 1_000 })))
  afterEach(async () => {
    for (const holdfast of opened.splice(0)) {
      await holdfast.close({ drain: 0 })
      await holdfast.store.close()
    }
    await group.stop()
  })

  it('asks sentinels that want to know who asks', async () => {
    for (const one of group.sentinels) {
      await redisCommand(one, 'ACL', 'SETUSER', 'holdfast', 'on', '>a b&c', '+@all', '&*')
      await redisCommand(one, 'ACL', 'SETUSER', 'default', 'resetpass', '>secret')
    }
    for (const login of ['sentinelPassword=secret', 'sentinelUser=holdfast&sentinelPassword=a%20b%26c']) {
      const store = await openRedisStore(`${url()}?${login}`, { driver })
      expect(await store.inspect('x', 2_000)).toMatchObject({ holders: [] })
      await store.close()
    }
  })

  it('goes on after a failover, and its tokens grow', async () => {
    const stores = await Promise.all([1, 2, 3].map(() => openRedisStore(url(), { driver })))
    const crew = new Crew(stores, 'contended')
    crew.start()
    await crew.progress(20)
    await failover()
    await crew.progress(20, 30_000)
    expect((await crew.stop()).tokens).toEqual([])
  })

  it.each([
    ['was killed', (old: Server) => old.kill('SIGKILL')],
    ['stood still', (old: Server) => old.pause()],
    [
      'was replaced as planned',
      async () => void (await redisCommand(group.sentinels[0]!, 'SENTINEL', 'FAILOVER', group.name)),
    ],
    // Once more on a machine without a free core.
  ])('serves everybody soon after a primary that %s', { retry: 1 }, async (_, fault) => {
    const old = await primary()
    const holdfasts = await Promise.all([1, 2, 3, 4].map(() => open({ ttl: 3_000, wait: 2_000 })))
    const served = new Set<Holdfast>()
    let over = false
    const work = async (holdfast: Holdfast): Promise<void> => {
      while (!over) {
        const lease = await holdfast
          .mutex('lock')
          .acquire()
          .catch(() => undefined)
        if (lease === undefined) continue
        served.add(holdfast)
        await sleep(2)
        await lease.release()
      }
    }
    const working = holdfasts.map(work)
    await expect.poll(() => served.size, { timeout: 20_000 }).toBe(4)
    await fault(old)
    await expect
      .poll(async () => (await group.primary())?.port, { timeout: 30_000, interval: 50 })
      .not.toBe(old.port)
    served.clear()
    // Half a second on a quiet machine. Who is passed over because it listens at the old server waits for ten and more.
    await expect.poll(() => served.size, { timeout: 4_000 }).toBe(4)
    over = true
    await Promise.all(working)
    if (old.pid !== undefined) await old.resume()
  })

  it('leaves the old primary of a planned failover before that is made a replica', async () => {
    const old = await primary()
    const scripts = async (): Promise<string> =>
      /cmdstat_evalsha:calls=\d+/.exec(String(await redisCommand(old, 'INFO', 'commandstats')))?.[0] ?? ''
    const crew = new Crew(await Promise.all([1, 2, 3].map(() => openRedisStore(url(), { driver }))), 'lock')
    crew.start()
    await crew.progress(20)
    await redisCommand(group.sentinels[2]!, 'SENTINEL', 'FAILOVER', group.name)
    await expect
      .poll(async () => (await group.primary())?.port, { timeout: 20_000, interval: 20 })
      .not.toBe(old.port)
    // A new process that came now would be at the new primary, beside those who are still at the old one.
    await sleep(2_000)
    const before = await scripts()
    await crew.progress(100)
    expect(await scripts()).toBe(before)
    expect(await redisCommand(old, 'ROLE')).toMatchObject({ 0: 'master' })
    expect((await crew.stop()).tokens).toEqual([])
  })

  it('finds sentinels that the URL does not name', async () => {
    const [first, ...others] = group.sentinels
    // They have only just begun to hear of each other, and ioredis asks once for those that are connected.
    const connected = async (): Promise<boolean> => {
      const known = (await redisCommand(first!, 'SENTINEL', 'SENTINELS', group.name)) as unknown[]
      return known.length === others.length && !JSON.stringify(known).includes('disconnected')
    }
    await expect.poll(connected, { timeout: 20_000 }).toBe(true)
    const store = await openRedisStore(`redis+sentinel://${first!.host}:${first!.port}/${group.name}`, {
      driver,
    })
    const holdfast = new Holdfast(store, { requestTimeout: 500, wait: 20_000 })
    opened.push(holdfast)
    await holdfast.mutex('lock').run(async () => {})
    await first!.kill('SIGKILL')
    expect(others).toHaveLength(2)
    await failover()
    await holdfast.mutex('lock').run(async () => {})
  })

  it('is found again when no sentinel has answered for a while', async () => {
    const holdfast = await open({ wait: 20_000 })
    const lock = holdfast.mutex('lock')
    const server = await primary()
    for (const one of group.sentinels) await one.pause()
    await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'normal')
    // Longer than a connection may take until it is given up.
    const enough = performance.now() + 5_000
    while (performance.now() < enough) await Promise.all([lock.tryAcquire().catch(() => {}), sleep(100)])
    for (const one of group.sentinels) await one.resume()
    expect(await (await lock.acquire()).release()).toBe('released')
    // Nothing is left of all the attempts: to each sentinel one connection that listens, and this one that asks.
    const ours = async (): Promise<number> => {
      const clients = await redisCommand(group.sentinels[1]!, 'CLIENT', 'LIST')
      return String(clients)
        .split('\n')
        .filter((line) => line.includes('addr=') && !line.includes('name=sentinel-')).length
    }
    await expect.poll(ours, { timeout: 10_000 }).toBeLessThanOrEqual(2)
  })

  it.each(['stands still', 'was killed'])('is found past a sentinel that %s', async (state) => {
    const [first] = group.sentinels
    await (state === 'was killed' ? first!.kill('SIGKILL') : first!.pause())
    const holdfast = await open({ wait: 10_000 })
    // A driver that asks one after the other comes to each of them.
    for (let round = 0; round < 4; round++) {
      await redisCommand(group.nodes[0]!, 'CLIENT', 'KILL', 'TYPE', 'normal')
      await holdfast.mutex('lock').run(async () => {})
    }
    // Who waits is told, also over a connection that is made now.
    const lease = await holdfast.mutex('lock').acquire()
    const heard = (await open({ wait: 10_000 })).mutex('lock').acquire()
    heard.catch(() => {})
    const listening = async (): Promise<unknown> =>
      redisCommand(group.nodes[0]!, 'PUBSUB', 'CHANNELS', 'hf:s:*')
    await expect.poll(listening, { timeout: 10_000 }).toHaveLength(1)
    await lease.release()
    await (await heard).release()
    if (first!.pid !== undefined) await first!.resume()
  })

  // node-redis says it when it connects, in another way.
  it.runIf(driver === 'ioredis')('tries the connections on which sentinels are listened to', async () => {
    const tried = vi.spyOn(Socket.prototype, 'setKeepAlive')
    await open()
    const tells = (): Set<number | undefined> => {
      const soon = tried.mock.calls.map(([on, delay = 0]) => on === true && delay > 0)
      const sockets = (tried.mock.contexts as Socket[]).filter(
        ({ readyState }, at) => soon[at] && readyState === 'open',
      )
      return new Set(sockets.map(({ remotePort }) => remotePort))
    }
    const ports = group.sentinels.map(({ port }) => port)
    await expect.poll(() => [...tells()], { timeout: 10_000 }).toEqual(expect.arrayContaining(ports))
    tried.mockRestore()
  })

  it('keeps a lock that was replicated through a failover, and gives it to the waiter afterwards', async () => {
    const [holder, waiter] = [await open(), await open({ wait: 30_000 })]
    const lease = await holder.mutex('lock').acquire()
    const waiting = waiter.mutex('lock').acquire()
    waiting.catch(() => {})
    await expect.poll(async () => (await holder.inspect('lock')).waiters.length).toBe(1)
    // As long as replication takes on an idle machine, many times over.
    await sleep(200)
    await failover()
    expect(lease.held).toBe(true)
    const tokenAtServer = async (): Promise<unknown> => (await waiter.inspect('lock')).holders[0]?.token
    await expect
      .poll(() => tokenAtServer().catch(() => 'no answer yet'), { timeout: 15_000 })
      .toBe(lease.token)
    expect(await lease.release()).toBe('released')
    const next = await waiting
    expect(next.token).toBeGreaterThan(lease.token)
  })

  it('gives a lock that was not replicated to a second holder, whose token keeps the first one out', async () => {
    const resource = await redis()
    const client = new Redis(resource.port)
    const write = async (value: string, token: bigint): Promise<boolean> =>
      (await fencedWrite(client, { key: 'guarded', value, token })).accepted
    const [first, second] = [await open({ renew: false, ttl: 60_000 }), await open({ wait: 30_000 })]
    const replicas = group.nodes.filter(({ port }) => port !== group.nodes[0]?.port)
    for (const replica of replicas) await replica.pause()
    // Otherwise what they cannot read now would wait for them in their sockets.
    await redisCommand(await primary(), 'CLIENT', 'KILL', 'TYPE', 'replica')
    const stale = await first.mutex('lock').acquire()
    expect(await write('first', stale.token)).toBe(true)
    const old = await primary()
    await old.kill('SIGKILL')
    for (const replica of replicas) await replica.resume()

    const fresh = await second.mutex('lock').acquire()
    // Both believe: this is what asynchronous replication costs.
    expect([stale.held, fresh.held]).toEqual([true, true])
    expect(fresh.token).toBeGreaterThan(stale.token)
    expect(await write('second', fresh.token)).toBe(true)
    expect(await write('late', stale.token)).toBe(false)
    client.disconnect()
    await resource.stop()
  })

  it('refuses a lock that the replicas did not confirm, and leaves nothing behind', async () => {
    const careful = await open({ wait: 2_000 }, { replicas: 2, replicaTimeout: 200 })
    const lease = await careful.mutex('lock').acquire()
    expect(await lease.release()).toBe('released')
    const [replica] = group.nodes.filter(({ port }) => port !== group.nodes[0]?.port)
    await replica?.pause()
    await expect(careful.mutex('lock').acquire({ wait: 500 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await replica?.resume()
    const plain = await open()
    await expect.poll(async () => (await plain.inspect('lock')).holders).toEqual([])
    await (await careful.mutex('lock').acquire({ wait: 10_000 })).release()
  })
})

describe.skipIf(!available('sentinel')).each(['redis-4', 'redis-6'])(
  'a Sentinel group, through %s',
  (name) => {
    it('is followed to the next primary, and left alone when the store is closed', async () => {
      const group = await sentinel({ replicas: 2, downAfter: 1_000 })
      const places = group.sentinels.map(({ host, port }) => `${host}:${port}`).join(',')
      const address = parseUrl(`redis+sentinel://${places}/${group.name}`)
      const driver = createRequire(import.meta.url)(name) as NodeRedis
      const stores = [1, 2, 3].map(() => storeOn(driverFor(withNodeRedis(driver, address), true), {}))
      const crew = new Crew(stores, 'contended')
      crew.start()
      await crew.progress(20)
      const old = await group.primary()
      await old?.kill('SIGKILL')
      await crew.progress(20, 30_000)
      expect((await crew.stop()).tokens).toEqual([])
      const left = async (): Promise<string[]> => {
        const clients = String(await redisCommand(group.sentinels[0]!, 'CLIENT', 'LIST'))
        return clients.split('\n').filter((line) => line.includes('addr=') && line.includes('sub=1 psub=0'))
      }
      // Sentinels listen to each other by connections of their own, to the servers and not here.
      await expect.poll(left, { timeout: 5_000 }).toEqual([])
      await group.stop()
    })
  },
)

describe.skipIf(!available('sentinel')).each(['redis', 'redis-6'])(
  'a client from createSentinel of %s',
  (name) => {
    it('is listened to once, whatever the number of stores, and not at all when they are closed', async () => {
      const { createSentinel } = createRequire(import.meta.url)(name) as typeof NodeRedisModule
      await using group = await sentinel({ replicas: 1, downAfter: 60_000 })
      const client = createSentinel({
        name: group.name,
        sentinelRootNodes: group.sentinels.map(({ host, port }) => ({ host, port })),
      })
      client.on('error', () => {})
      await client.connect()
      const before = client.eventNames().map((event) => [event, client.listenerCount(event)])
      const stores = Array.from({ length: 15 }, (_, at) => redisStore(client, { prefix: `p${at}` }))
      const watches = stores.map(async (store, at) => store.watch(`s${at}`, () => {}, 5_000))
      for (const watch of await Promise.all(watches)) expect(watch.kind).toBe('watching')
      for (const event of client.eventNames()) expect(client.listenerCount(event)).toBeLessThan(4)
      for (const store of stores) await store.close()
      expect(client.eventNames().map((event) => [event, client.listenerCount(event)])).toEqual(before)
      await client.destroy()
    })
  },
)
