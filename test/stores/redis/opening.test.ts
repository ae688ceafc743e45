import { createRequire } from 'node:module'

import { Redis } from 'ioredis'
import { createClientPool } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast, open } from 'holdfast'
import { checkRedis, openRedisStore, redisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const DRIVERS = ['ioredis', 'redis'] as const
const why = (opening: Promise<unknown>): Promise<string> => opening.then(() => 'opened', String)

/** Whatever would make every acquire fail is said when the store is opened, and by the checks. */
describe.skipIf(!available('redis')).each(DRIVERS)('a store that is opened through %s', (driver) => {
  let server: Server
  let replica: Server
  beforeAll(async () => {
    server = await redis()
    replica = await redis({ args: ['--replicaof', '127.0.0.1', String(server.port)] })
  })
  afterAll(() => Promise.all([replica.stop(), server.stop()]))
  const at = (one: Server, path = ''): Promise<string> =>
    why(openRedisStore(`${one.url}${path}`, { driver }).then((store) => store.close()))
  const check = (): Promise<unknown> => checkRedis(server.url, { driver })

  it('refuses a replica', async () => {
    expect(await at(replica)).toMatch(/READONLY.*lead the connection to the primary/s)
    expect(await checkRedis(replica.url, { driver })).toContainEqual(
      expect.objectContaining({ level: 'error', code: 'role' }),
    )
  })

  it.each([
    ['a full server', 'maxmemory', '1', '0', /OOM/],
    ['a server that lacks replicas', 'min-replicas-to-write', '3', '0', /NOREPLICAS/],
  ])('refuses %s', async (_, setting, bad, good, message) => {
    await redisCommand(server, 'CONFIG', 'SET', setting, bad)
    expect(await at(server)).toMatch(message)
    expect(await check()).toContainEqual(expect.objectContaining({ level: 'error', code: 'writes' }))
    await redisCommand(server, 'CONFIG', 'SET', setting, good)
    expect(await at(server)).toBe('opened')
    expect(await redisCommand(server, 'KEYS', '*')).toEqual([])
  })

  it('is as its URL says, unless the caller says otherwise', async () => {
    const keys = async (query: string, options = {}): Promise<unknown> => {
      await redisCommand(server, 'FLUSHALL')
      const store = await openRedisStore(`${server.url}${query}`, { driver, ...options })
      await new Holdfast(store).mutex('lock').run(() => {})
      await store.close()
      return redisCommand(server, 'KEYS', '*')
    }
    expect(await keys('?prefix=app')).toEqual(['app:{lock}'])
    expect(await keys('?prefix=app', { prefix: 'mine' })).toEqual(['mine:{lock}'])
    expect(await keys('?prefix=app', { prefix: undefined })).toEqual(['app:{lock}'])
    await using holdfast = await open(`${server.url}?prefix=app`, { driver, prefix: 'root', ttl: 5000 })
    await holdfast.mutex('lock').run(() => {})
    expect(await redisCommand(server, 'KEYS', 'root:*')).toEqual(['root:{lock}'])
    await expect(open(server.url, { driver, replicas: 101 })).rejects.toThrow('replicas')
    expect(await at(server, '?replicas=many')).toContain('replicas')
    await expect(openRedisStore(`${server.url}?fencing=some`, { driver })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await redisCommand(server, 'FLUSHALL')
  })

  it('refuses a database that the server does not have', async () => {
    expect(await at(server, '/99')).toContain('DB index is out of range')
    expect(await at(server, '/9')).toBe('opened')
  })

  it('says at once that a server is none of a Cluster', async () => {
    const opening = openRedisStore(`redis+cluster://127.0.0.1:${server.port}`, { driver })
    await expect(opening).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('use redis://') as string,
    })
  })

  it('says soon that nobody listens there', async () => {
    const began = performance.now()
    expect(await why(openRedisStore('redis://127.0.0.1:1', { driver }))).toContain('ECONNREFUSED')
    expect(performance.now() - began).toBeLessThan(3_000)
  })

  it('is checked also where INFO and CONFIG are forbidden', async () => {
    await redisCommand(
      server,
      'ACL',
      'SETUSER',
      'quiet',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      '-info',
      '-config',
    )
    const findings = await checkRedis(`redis://quiet:secret@127.0.0.1:${server.port}`, { driver })
    expect(findings).toContainEqual(expect.objectContaining({ code: 'unchecked' }))
    expect(findings.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('says that it lacks the right to say and to hear anything', async () => {
    await redisCommand(server, 'ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', 'resetchannels', '+@all')
    expect(await why(openRedisStore(`redis://mute:secret@127.0.0.1:${server.port}`, { driver }))).toMatch(
      /channel.*lists the rights/is,
    )
  })
})

describe.skipIf(!available('redis'))('a client of the user’s', () => {
  let server: Server
  beforeAll(async () => void (server = await redis()))
  afterAll(() => server.stop())

  it('that may not use channels gets its locks by asking', async () => {
    await redisCommand(server, 'ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', 'resetchannels', '+@all')
    const clients = [0, 1].map(() => new Redis(server.port, { username: 'mute', password: 'secret' }))
    const [one, other] = clients.map((client) => new Holdfast(redisStore(client), { wait: 5_000 }))
    const lease = await one!.mutex('lock').acquire()
    const waiting = other!.mutex('lock').acquire()
    waiting.catch(() => {})
    await new Promise((resolve) => void setTimeout(resolve, 100))
    expect(await lease.release()).toBe('released')
    expect(await (await waiting).release()).toBe('released')
    for (const holdfast of [one, other]) await holdfast?.close()
    for (const client of clients) client.disconnect()
  })

  it('is listened to once, whatever the number of stores, and not at all when they are closed', async () => {
    const warnings: Error[] = []
    const warned = (warning: Error): void => void warnings.push(warning)
    process.on('warning', warned)
    const client = new Redis(server.port)
    const before = client.eventNames().map((event) => [event, client.listenerCount(event)])
    const stores = Array.from({ length: 15 }, (_, at) =>
      redisStore(client, { prefix: `p${at}`, replicas: 1 }),
    )
    const watches = stores.map(async (store, at) => store.watch(`s${at}`, () => {}, 5_000))
    for (const watch of await Promise.all(watches)) expect(watch.kind).toBe('watching')
    expect(client.listenerCount('close')).toBeLessThan(4)
    for (const store of stores) await store.close()
    expect(client.eventNames().map((event) => [event, client.listenerCount(event)])).toEqual(before)
    await new Promise(setImmediate)
    process.off('warning', warned)
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
    client.disconnect()
  })

  it('is the only connection while nobody waits; the first who waits makes another one', async () => {
    const client = new Redis(server.port)
    const [one, other] = [0, 1].map(() => new Holdfast(redisStore(client, { prefix: 'alone' })))
    const listeners = async (): Promise<unknown> => redisCommand(server, 'PUBSUB', 'CHANNELS', 'alone:*')
    const lease = await one!.mutex('lock').acquire()
    for (let round = 0; round < 20; round++) await other!.mutex('another').run(() => {})
    expect(await listeners()).toEqual([])
    const waiting = other!.mutex('lock').acquire()
    await expect.poll(async () => (await one!.inspect('lock')).waiters.length).toBe(1)
    expect(await listeners()).toHaveLength(1)
    await lease.release()
    await (await waiting).release()
    for (const holdfast of [one, other]) await holdfast?.close()
    client.disconnect()
  })

  it('must not be a pool', () => {
    expect(() => redisStore(createClientPool() as never)).toThrow(/pool.*createClient/)
  })

  it('must not have commands with callbacks', () => {
    const { createClient: createClient4 } = createRequire(import.meta.url)('redis-4') as {
      createClient: (options: object) => { duplicate(options: object): never }
    }
    const legacy = createClient4({ legacyMode: true })
    expect(() => redisStore(legacy as never)).toThrow(/legacyMode/)
    expect(() => redisStore(legacy.duplicate({ legacyMode: false }))).not.toThrow()
  })
})

describe.skipIf(!available('redis'))('a quorum whose longest lease is shorter than the usual one', () => {
  it('is opened with that one', async () => {
    const servers = await Promise.all([redis(), redis(), redis()])
    const places = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const holdfast = await open(`redlock://${places}?maxTtl=2000&setup=now`)
    const lease = await holdfast.mutex('lock').acquire()
    expect(lease.held).toBe(true)
    await lease.release()
    await holdfast.close()
    await Promise.all(servers.map((server) => server.stop()))
  })
})
