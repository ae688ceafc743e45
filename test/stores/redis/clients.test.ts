import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { inspect } from 'node:util'

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { ClaimRequest, Store } from 'holdfast/store'
import { fencedWrite, openRedisStore, prepareDurableFencing, redisStore, startupChecks } from 'holdfast/redis'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { connectTo } from '../../../src/stores/redis/client/of-url.ts'
import type { LeadingClient } from '../../../src/stores/redis/client/node-redis.ts'
import { parseUrl } from '../../../src/stores/redis/url.ts'
import { leftoversAt } from './leftovers.ts'

const claimOf = (name: string, id = 'session.1'): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 5_000,
  patience: 1_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})

describe.skipIf(!available('redis'))('a client of the user’s', () => {
  let server: Server
  beforeAll(async () => void (server = await redis()))
  afterAll(() => server.stop())

  it('of ioredis stays open and as it was when the store is closed', async () => {
    const client = new Redis(server.port)
    const before = { ...client.options }
    const store = redisStore(client)
    const watch = await store.watch('session', () => {}, 1_000)
    expect(watch.kind).toBe('watching')
    expect(await store.claim(claimOf('own'), 1_000)).toMatchObject({ kind: 'held' })
    await store.close()
    expect(await client.ping()).toBe('PONG')
    expect(client.options).toEqual(before)
    expect(client.listenerCount('ready')).toBe(0)
    await expect.poll(() => redisCommand(server, 'PUBSUB', 'CHANNELS', '*')).toEqual([])
    client.disconnect()
  })

  // For a moment ioredis calls a connection ready that is not, and refuses what it is given.
  it('of ioredis is waited for from when the server has ended its connection', async () => {
    const client = new Redis(server.port, { enableOfflineQueue: false, maxRetriesPerRequest: 0 })
    client.on('error', () => {})
    const store = redisStore(client)
    await new Promise<void>((resolve) => void client.on('ready', resolve))
    const tried = new Promise<[string, unknown]>((resolve) => {
      client.stream.on('end', () => {
        setImmediate(() => resolve([client.status, store.claim(claimOf('ended'), 1_000)]))
      })
    })
    await redisCommand(server, 'CLIENT', 'KILL', 'ID', String(await client.client('ID')))
    const [status, claim] = await tried
    expect(status).toBe('ready')
    expect(await claim).toMatchObject({ kind: 'held' })
    await store.close()
    client.disconnect()
  })

  // docs/stores/redis.md says so. Nothing that can be set on node-redis does it.
  it.each(['ioredis', 'ioredis-6', 'iovalkey'])(
    'of %s with a socketTimeout leaves a connection on which everything is swallowed',
    async (name) => {
      const proxy = await FaultProxy.open(server)
      const driver = createRequire(import.meta.url)(name) as { readonly Redis: typeof Redis }
      const client = new driver.Redis(proxy.port, { socketTimeout: 300 })
      client.on('error', () => {})
      const store = redisStore(client)
      expect(await store.claim(claimOf(name), 2_000)).toMatchObject({ kind: 'held' })
      proxy.set('requests', { blackhole: true })
      expect(await store.claim(claimOf(`${name}, swallowed`), 100)).toMatchObject({ kind: 'unknown' })
      // What was swallowed is not sent again: that connection stays as it is.
      proxy.heal()
      expect(await store.claim(claimOf(`${name}, later`), 5_000)).toMatchObject({ kind: 'held' })
      await store.close()
      client.disconnect()
      await proxy.close()
    },
  )

  it('of node-redis stays open when the store is closed', async () => {
    const client = createClient({ url: server.url })
    await client.connect()
    const store = redisStore(client)
    expect(await store.watch('session', () => {}, 1_000)).toMatchObject({ kind: 'watching' })
    expect(await store.claim(claimOf('own-too'), 1_000)).toMatchObject({ kind: 'held' })
    await store.close()
    expect(await client.ping()).toBe('PONG')
    await expect.poll(() => redisCommand(server, 'PUBSUB', 'CHANNELS', '*')).toEqual([])
    client.destroy()
  })

  it('may put a prefix before its keys: locks, wake-ups and lists work behind it', async () => {
    const clients = [0, 1].map(() => new Redis(server.port, { keyPrefix: 'app{x}:' }))
    const [one, two] = clients.map((client) => new Holdfast(redisStore(client), { patience: 30_000 }))
    const lease = await one?.mutex('prefixed').acquire()
    expect(await redisCommand(server, 'EXISTS', 'app{x}:hf:{prefixed}')).toBe(1)
    const waiting = two?.mutex('prefixed').acquire()
    await expect.poll(async () => (await one?.inspect('prefixed'))?.waiters.length).toBe(1)
    expect((await one?.list({ prefix: 'pre' }))?.names).toEqual(['prefixed'])
    const began = performance.now()
    await lease?.release()
    await (await waiting)?.release()
    // Woken: the first sign of life would have come after more than that.
    expect(performance.now() - began).toBeLessThan(4_000)
    await Promise.all([one?.close(), two?.close()])
    for (const client of clients) client.disconnect()
  })

  it('that connects lazily is connected by the first claim', async () => {
    const client = new Redis(server.port, { lazyConnect: true })
    expect(await redisStore(client).claim(claimOf('lazy'), 1_000)).toMatchObject({ kind: 'held' })
    client.disconnect()
  })

  it('that was never connected is an answer, not a wait for ever', async () => {
    const client = createClient({ url: server.url })
    const answer = await redisStore(client).claim(claimOf('never'), 100)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { message: /client\.connect\(\)/ } })
  })

  it('that nobody connects is told to a waiter within a moment; one that is connected late is waited for', async () => {
    const never = createClient({ url: server.url })
    const closed = createClient({ url: server.url })
    await closed.connect()
    await closed.quit()
    for (const client of [never, closed]) {
      const holdfast = new Holdfast(redisStore(client))
      const began = performance.now()
      await expect(holdfast.mutex('never').acquire({ wait: 20_000 })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('client.connect()') as string,
      })
      expect(performance.now() - began).toBeLessThan(4_000)
      await holdfast.close({ drain: 0, timeout: 100 })
    }
    const late = createClient({ url: server.url })
    const holdfast = new Holdfast(redisStore(late))
    const waiting = holdfast.mutex('late').acquire({ wait: 20_000 })
    await late.connect()
    await (await waiting).release()
    await holdfast.close()
    late.destroy()
  })

  it('that its owner has closed is not waited for', async () => {
    const first = new Redis(server.port)
    const second = createClient({ url: server.url })
    await second.connect()
    for (const [client, close] of [
      [first, () => first.quit()],
      [second, () => second.quit()],
    ] as const) {
      const holdfast = new Holdfast(redisStore(client))
      const lease = await holdfast.mutex('closed').acquire()
      await close()
      const began = performance.now()
      for (const ask of [
        () => holdfast.mutex('other').tryAcquire(),
        () => holdfast.mutex('other').acquire({ wait: 5_000 }),
      ])
        await expect(ask()).rejects.toMatchObject({
          code: 'STORE_UNAVAILABLE',
          cause: { message: expect.stringContaining('closed') as string },
        })
      await lease.release()
      expect(performance.now() - began).toBeLessThan(4_000)
      await holdfast.close({ drain: 0, timeout: 100 })
    }
  })

  it('must be one of the drivers that are known', () => {
    for (const thing of [undefined, null, {}, 'redis://', () => {}]) {
      expect(() => redisStore(thing as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    }
  })

  it('must come with options that make sense', () => {
    const client = new Redis({ lazyConnect: true })
    for (const options of [
      { prefix: 'a{b}' },
      { prefix: '' },
      { replicas: -1 },
      { replicaTimeout: 0 },
      { fencing: 'x' },
    ]) {
      expect(() => redisStore(client, options as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
    }
  })
})

it.skipIf(!available('redis'))(
  'node-redis writes its class of all commands once, whatever the number of servers',
  async () => {
    const server = await redis()
    const clients = (await Promise.all(
      ['127.0.0.1', 'localhost'].map((host) =>
        connectTo(parseUrl(`redis://${host}:${server.port}`), 'redis'),
      ),
    )) as LeadingClient[]
    try {
      await expect.poll(() => clients.map(({ isReady }) => isReady)).toEqual([true, true])
      expect(clients.map(({ options }) => options?.socket)).toMatchObject([
        { host: '127.0.0.1' },
        { host: 'localhost' },
      ])
      const [one, other] = clients.map((client) => client.duplicate({}).constructor)
      expect(one).toBe(other)
    } finally {
      for (const client of clients) client.destroy?.()
      await server.stop()
    }
  },
)

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'while the server is away, %s',
  (driver) => {
    it('keeps no claim back to send it later', async () => {
      const server = await redis()
      const client = driver === 'ioredis' ? new Redis(server.port) : createClient({ url: server.url })
      client.on('error', () => {})
      if ('isReady' in client) await client.connect()
      const store = redisStore(client)
      await store.claim(claimOf('before'), 1_000)
      await server.kill('SIGKILL')
      // What is sent before the driver has noticed is under way, and ioredis sends that again by itself.
      const noticed = () => ('isReady' in client ? !client.isReady : client.status !== 'ready')
      await expect.poll(noticed).toBe(true)
      expect(await store.claim(claimOf('gone'), 50)).toMatchObject({ kind: 'unknown' })
      const began = performance.now()
      expect(await store.claim(claimOf('away'), 200)).toMatchObject({ kind: 'unknown' })
      expect(performance.now() - began).toBeLessThan(5_000)

      await server.restart()
      // The next one is sent as soon as the connection stands, and nothing that was asked before it.
      expect(await store.claim(claimOf('after'), 10_000)).toMatchObject({ kind: 'held' })
      expect(await redisCommand(server, 'KEYS', 'hf:*')).toEqual(['hf:{after}'])
      await store.close()
      if ('destroy' in client) client.destroy()
      else client.disconnect()
      await server.stop()
    })
  },
)

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a store from a URL, through %s',
  (driver) => {
    let server: Server
    beforeAll(async () => void (server = await redis({ args: ['--requirepass', 'hunter2'] })))
    afterAll(() => server.stop())
    const url = (credentials: string): string => `redis://${credentials}@${server.host}:${server.port}`

    it('uses the password and the database', async () => {
      const store = await openRedisStore(`${url(':hunter2')}/5`, { driver })
      await store.claim(claimOf('in-five'), 1_000)
      const admin = new Redis(server.port, { password: 'hunter2', db: 5 })
      expect(await admin.exists('hf:{in-five}')).toBe(1)
      admin.disconnect()
      await store.close()
    })

    it.each([':wrong', 'ann:wrong', ''])(
      'says at once that the credentials "%s" are not good, without showing them',
      async (credentials) => {
        const began = performance.now()
        const error: unknown = await openRedisStore(url(credentials), { driver }).catch(
          (thrown: unknown) => thrown,
        )
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(String(error)).toMatch(/NOAUTH|WRONGPASS/)
        expect(performance.now() - began).toBeLessThan(4_000)
        for (let cause = error; cause instanceof Error; cause = cause.cause) {
          expect(inspect(cause, { depth: 10, showHidden: true })).not.toContain('wrong')
        }
      },
    )

    it('leaves no connection, no subscription and no key behind', async () => {
      const store: Store = await openRedisStore(url(':hunter2'), { driver, prefix: 'gone' })
      const holdfast = new Holdfast(store)
      await holdfast.mutex('job').run(() => {})
      await holdfast.semaphore('pool', 3).run(() => {})
      await holdfast.close()
      await store.close()
      const admin = new Redis(server.port, { password: 'hunter2' })
      await expect
        .poll(
          async () =>
            String(await admin.client('LIST'))
              .trim()
              .split('\n').length,
        )
        .toBe(1)
      admin.disconnect()
    })
  },
)

interface Drivers {
  readonly Redis: typeof Redis
  readonly createClient: typeof createClient
}

/** Each of them makes a driver for itself, and some of those listen. */
describe.skipIf(!available('redis')).each(['ioredis', 'redis-4', 'redis', 'redis-6'])(
  'a client of %s that no store is made of',
  (name) => {
    it('is left as it was by each function that takes it', async () => {
      await using server = await redis()
      const driver = createRequire(import.meta.url)(name) as Drivers
      const client =
        name === 'ioredis'
          ? new driver.Redis(server.port, { lazyConnect: true })
          : driver.createClient({ url: server.url })
      client.on('error', () => {})
      await client.connect()
      const listeners = (): unknown =>
        client.eventNames().map((event) => [event, client.listenerCount(event)])
      const before = listeners()
      await fencedWrite(client, { key: 'stock', value: 'a', token: 5n })
      await startupChecks(client)
      // It keeps nothing on disk.
      await expect(prepareDurableFencing(client)).rejects.toThrow('Durable fencing needs another server')
      expect(listeners()).toEqual(before)
      await client.disconnect()
    })
  },
)

describe.skipIf(!available('redis'))('a store that is done', () => {
  it('has left nothing at the server but fences that run out', async () => {
    const server = await redis()
    const stores = await Promise.all([0, 1, 2].map(() => openRedisStore(server.url)))
    const holdfasts = stores.map((store) => new Holdfast(store))
    await Promise.all(
      holdfasts.flatMap((holdfast) => [
        ...Array.from({ length: 20 }, () => holdfast.mutex('one').run(() => {})),
        ...Array.from({ length: 20 }, () => holdfast.semaphore('three', 3).run(() => {}, { permits: 2 })),
        ...Array.from({ length: 20 }, () => holdfast.readWriteLock('both').read.run(() => {})),
        ...Array.from({ length: 5 }, () => holdfast.readWriteLock('both').write.run(() => {})),
      ]),
    )
    for (const holdfast of holdfasts) await holdfast.close()
    for (const store of stores) await store.close()
    await expect.poll(() => leftoversAt(server)).toEqual([])
    const keys = (await redisCommand(server, 'KEYS', '*')) as string[]
    expect(keys.toSorted()).toEqual(['hf:{both}', 'hf:{one}', 'hf:{three}'])
    await server.stop()
  })
})

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a user of %s with few permissions',
  (driver) => {
    it('needs no more than the documentation says', async () => {
      const page = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
      const rule = /^ACL SETUSER locks (.*)$/m.exec(page)?.[1]?.split(' ') ?? []
      const server = await redis()
      await redisCommand(server, 'ACL', 'SETUSER', 'locks', ...rule)
      const url = `redis://locks:password@${server.host}:${server.port}`
      const [one, two] = await Promise.all(
        [0, 1].map(async () => new Holdfast(await openRedisStore(url, { driver }))),
      )
      const lease = await one?.mutex('job').acquire()
      const waiting = two?.mutex('job').acquire()
      await expect.poll(async () => (await one?.inspect('job'))?.waiters.length).toBe(1)
      expect(await lease?.release()).toBe('released')
      expect(await (await waiting)?.release()).toBe('released')
      for (const holdfast of [one, two]) await holdfast?.readWriteLock('both').read.run(() => {})
      expect(await one?.semaphore('pool', 3).run(({ held }) => held, { permits: 2 })).toBe(true)
      const aborted = one
        ?.mutex('x')
        .acquire({ signal: AbortSignal.timeout(0) })
        .catch(() => undefined)
      await (await aborted)?.release()
      for (const holdfast of [one, two]) {
        await holdfast?.close()
        await holdfast?.store.close()
      }
      await server.stop()
    })
  },
)
