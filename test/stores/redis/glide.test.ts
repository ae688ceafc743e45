import { once } from 'node:events'
import { inspect } from 'node:util'

import { Batch, Decoder, GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide'
import type { GlideClientConfiguration } from '@valkey/valkey-glide'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { ClaimRequest } from 'holdfast/store'
import { fencedWrite, openRedisStore, prepareDurableFencing, redisStore, startupChecks } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'
import { redisCache } from 'holdfast/recipes'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { leftoversAt } from './leftovers.ts'

const claimOf = (name: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  name,
  id: 'session.1',
  weight: 1,
  capacity: 1,
  ttl: 5_000,
  patience: 1_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
  ...more,
})

describe.skipIf(!available('redis'))('a client of GLIDE', () => {
  let server: Server
  const clients: GlideClient[] = []
  beforeAll(async () => {
    Logger.init('off')
    server = await redis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  })
  afterEach(() => {
    for (const client of clients.splice(0)) client.close()
  })
  afterAll(() => server.stop())

  async function connect(
    more: Partial<GlideClientConfiguration> = {},
    { host, port }: { readonly host: string; readonly port: number } = server,
  ): Promise<GlideClient> {
    const client = await GlideClient.createClient({
      addresses: [{ host, port }],
      requestTimeout: 2_000,
      ...more,
    })
    clients.push(client)
    return client
  }

  it.each([{}, { defaultDecoder: Decoder.Bytes }, { protocol: 0 }])(
    'means the same by every reply with %o',
    async (options) => {
      const client = await connect(options as Partial<GlideClientConfiguration>)
      const store = redisStore(client)
      expect(store.capabilities).toMatchObject({ queue: true, wakeups: 'poll' })
      const holdfast = new Holdfast(store, { owner: 'me' })
      const lease = await holdfast.mutex('decoded').acquire()
      expect((await holdfast.inspect('decoded')).holders).toMatchObject([{ owner: 'me', token: lease.token }])
      expect((await holdfast.list()).names).toEqual(['decoded'])
      expect(await lease.release()).toBe('released')
      await holdfast.close()
      expect(await leftoversAt(server)).toEqual([])
      // It stays its owner's.
      expect(String(await client.ping())).toBe('PONG')
    },
  )

  it('says so when its owner closes it', async () => {
    const client = await connect()
    const store = redisStore(client)
    expect(await store.claim(claimOf('closed'), 1_000)).toMatchObject({ kind: 'held' })
    client.close()
    expect(await store.claim(claimOf('closed'), 1_000)).toMatchObject({
      kind: 'unknown',
      retryable: false,
      cause: { message: 'the Redis client has been closed' },
    })
  })

  it('goes on after scripts were forgotten', async () => {
    const store = redisStore(await connect())
    await redisCommand(server, 'SCRIPT', 'FLUSH')
    expect(await store.claim(claimOf('flushed'), 1_000)).toMatchObject({ kind: 'held' })
    await redisCommand(server, 'SCRIPT', 'FLUSH')
    expect(await store.release(claimOf('flushed'), undefined, 1_000)).toEqual({
      released: { kind: 'released' },
    })
  })

  it('says what the server says, in its words', async () => {
    const client = await connect()
    const store = redisStore(client)
    const answerOf = async (name: string): Promise<unknown> => store.claim(claimOf(name), 1_000)
    await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', '1')
    expect(await answerOf('full')).toMatchObject({
      cause: { message: expect.stringMatching(/^OOM /) as string },
    })
    await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', '0')

    await redisCommand(server, 'SET', 'hf:{other}', 'text')
    expect(await answerOf('other')).toMatchObject({
      retryable: false,
      scope: 'name',
      cause: { message: expect.stringMatching(/^WRONGTYPE /) as string },
    })
    await redisCommand(server, 'DEL', 'hf:{other}')

    await redisCommand(server, 'REPLICAOF', '127.0.0.1', '1')
    expect(await answerOf('replica')).toMatchObject({
      cause: { message: expect.stringMatching(/^READONLY .*lead the connection to the primary/) as string },
    })
    // One that takes writes is told apart as well.
    await redisCommand(server, 'CONFIG', 'SET', 'replica-read-only', 'no')
    expect(await redisStore(client).claim(claimOf('replica'), 1_000)).toMatchObject({
      cause: { message: expect.stringContaining('replica that takes writes') as string },
    })
    await redisCommand(server, 'REPLICAOF', 'NO', 'ONE')
    await redisCommand(server, 'CONFIG', 'SET', 'replica-read-only', 'yes')
    await redisCommand(server, 'DEL', 'hf:{replica}')
  })

  it('without rights, or without a password, is not asked again', async () => {
    await redisCommand(server, 'ACL', 'SETUSER', 'poor', 'on', '>geheim', '~*', '&*', '+@all', '-evalsha')
    const poor = redisStore(await connect({ credentials: { username: 'poor', password: 'geheim' } }))
    const answer = await poor.claim(claimOf('poor'), 1_000)
    expect(answer).toMatchObject({
      retryable: false,
      cause: { message: expect.stringMatching(/^NOPERM /) as string },
    })
    expect(inspect([answer, poor], { depth: 9 }) + JSON.stringify(poor)).not.toMatch(/geheim|session\.1/)

    const wrong = redisStore(
      await connect({ lazyConnect: true, credentials: { username: 'poor', password: 'falsch' } }),
    )
    const refused = await wrong.claim(claimOf('wrong'), 1_000)
    expect(refused).toMatchObject({
      retryable: false,
      cause: { message: expect.stringMatching(/^WRONGPASS /) as string },
    })
    expect(inspect(refused, { depth: 9 })).not.toContain('falsch')
  })

  it('withdraws a claim whose time was up before the server answered', async () => {
    const client = await connect({ requestTimeout: 100 })
    const other = await openRedisStore(server.url)
    const holdfast = new Holdfast(redisStore(client), { requestTimeout: 1_000 })
    await redisCommand(server, 'CLIENT', 'PAUSE', '600', 'ALL')
    await expect(holdfast.mutex('slow').acquire({ wait: 200 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await holdfast.close()
    expect(await other.claim(claimOf('slow'), 2_000)).toMatchObject({ kind: 'held' })
    await other.release(claimOf('slow'), undefined, 1_000)
    await other.close()
  })

  it('behind a dead connection tells that the lease is lost, and goes on when that is closed', async () => {
    const proxy = await FaultProxy.open(server)
    const holdfast = new Holdfast(redisStore(await connect({ requestTimeout: 200 }, proxy)), { ttl: 600 })
    const lease = await holdfast.mutex('dead').acquire()
    for (const direction of ['requests', 'replies'] as const) proxy.set(direction, { blackhole: true })
    if (!lease.signal.aborted) await once(lease.signal, 'abort')
    expect(lease.held).toBe(false)
    proxy.heal()
    proxy.reset()
    const again = await holdfast.mutex('dead').acquire({ wait: 20_000 })
    expect(again.token).toBeGreaterThan(lease.token)
    await again.release()
    await holdfast.close()
    await proxy.close()
  })

  it('counts with durable fencing, writes with a fence, and looks at the server', async () => {
    const client = await connect()
    await prepareDurableFencing(client, { prefix: 'durable' })
    const store = redisStore(client, { prefix: 'durable', fencing: 'durable' })
    expect(await store.claim(claimOf('counted'), 1_000)).toMatchObject({ kind: 'held' })
    await store.release(claimOf('counted'), undefined, 1_000)
    expect(await fencedWrite(client, { key: '{g}:x', value: 'v', token: 7n })).toEqual({
      accepted: true,
      token: 7n,
    })
    const cache = redisCache(client)
    await cache.setFenced('g', '"text"', { ttl: 1_000, token: 7n })
    expect(await cache.get('g')).toBe('"text"')
    const codes = (await startupChecks(client)).map(({ level, code }) => `${level} ${code}`)
    expect(codes).toEqual(expect.arrayContaining(['ok version', 'ok eviction', 'ok persistence', 'ok clock']))
  })

  it('is refused with what it cannot keep, and for a Cluster', async () => {
    const client = await connect()
    expect(() => redisStore(client, { replicas: 1 })).toThrow(/replicas needs a client of ioredis or redis/)
    const cluster = Object.create(GlideClusterClient.prototype) as RedisClient
    expect(() => redisStore(cluster)).toThrow(/must be a GlideClient: for a Cluster/)
    expect(() => redisStore(new Batch(false) as unknown as RedisClient)).toThrow(
      /client must be a client of the package/,
    )
  })
})
