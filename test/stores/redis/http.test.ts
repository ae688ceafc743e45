import { inspect } from 'node:util'

import { Redis as Upstash } from '@upstash/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { ClaimRequest, Store } from 'holdfast/store'
import { quorumStore } from 'holdfast/quorum'
import { redisCache } from 'holdfast/recipes'
import { fencedWrite, openRedisStore, redisStore, startupChecks } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { HttpRedisClient } from '../../../src/stores/redis/client/http.ts'
import { leftoversAt } from './leftovers.ts'
import { restBridge } from './rest-bridge.ts'
import type { Mishap, RestBridge } from './rest-bridge.ts'

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

/** Happens to the first request, and to no other. */
function once(mishap: Mishap): () => Mishap | undefined {
  let happened = false
  return () => {
    if (happened) return undefined
    happened = true
    return mishap
  }
}

describe.skipIf(!available('redis'))('Redis over HTTP', () => {
  let server: Server
  let bridge: RestBridge
  let store: Store
  beforeAll(async () => {
    server = await redis()
    bridge = await restBridge(server)
    store = redisStore(client())
  })
  afterAll(async () => {
    await bridge[Symbol.asyncDispose]()
    await server.stop()
  })
  beforeEach(() => void (bridge.mishap = () => undefined))

  const client = (more: object = {}): Upstash =>
    new Upstash({ url: bridge.url, token: bridge.token, ...more })

  it('has a line, and tells nobody in it', async () => {
    expect(store.capabilities).toMatchObject({ queue: true, shared: true, permits: true, wakeups: 'poll' })
    await store.watch('session', () => {}, 1_000)
    expect(await redisCommand(server, 'PUBSUB', 'CHANNELS', '*')).toEqual([])
    expect(store.votes).toBeUndefined()
  })

  // With all that people set on the client: JSON read or not, commands put together or not, base64 or not.
  it.each([
    {},
    { automaticDeserialization: false },
    { enableAutoPipelining: false },
    { responseEncoding: false },
    { automaticDeserialization: false, enableAutoPipelining: false, responseEncoding: false },
  ])('means the same by every reply with %o', async (options) => {
    const name = `options ${JSON.stringify(options)}`
    const holdfast = new Holdfast(redisStore(client(options)), { owner: '"owner"' })
    const lease = await holdfast.mutex(name).acquire()
    const waiting = holdfast.readWriteLock(`${name} rw`).read.acquire()
    const reader = await waiting
    const { holders } = await holdfast.inspect(name)
    expect(holders).toMatchObject([{ owner: '"owner"', token: lease.token }])
    const { names } = await holdfast.list({ prefix: name })
    expect([...names].sort()).toEqual([name, `${name} rw`])
    expect(await reader.release()).toBe('released')
    expect(await lease.release()).toBe('released')
    await holdfast.close()
    expect(await leftoversAt(server)).toEqual([])
  })

  it.each(['true', 'null', '12', '1e3', '"quoted"', '[1, 2]', '{"a":1}', '', '=', '\u0001', '\u{1F512}'])(
    'shows the owner %j as it is, of its own claims and of those of other clients',
    async (owner) => {
      const other = await openRedisStore(server.url)
      const mine = claimOf('owners', { owner, capacity: 2 })
      const theirs = claimOf('owners', {
        owner: owner === '\u0001' ? 'x' : owner,
        capacity: 2,
        id: 'session.2',
      })
      const waiter = { ...mine, id: 'session.3', whenBusy: 'queue' as const }
      expect(await store.claim(mine, 1_000)).toMatchObject({ kind: 'held' })
      expect(await other.claim(theirs, 1_000)).toMatchObject({ kind: 'held' })
      expect(await store.claim(waiter, 1_000)).toMatchObject({ kind: 'queued' })
      for (const asked of [store, other]) {
        const shown = await asked.inspect('owners', 1_000)
        if ('kind' in shown) throw shown.cause
        const owners = [...shown.holders, ...shown.waiters].map((claim) => [claim.id, claim.owner])
        expect(Object.fromEntries(owners)).toEqual({
          'session.1': owner,
          'session.2': theirs.owner,
          'session.3': owner,
        })
      }
      for (const claim of [waiter, mine, theirs]) await store.release(claim, undefined, 1_000)
      await other.close()
    },
  )

  it('is granted in its turn by clients that are told, before those who came later', async () => {
    const told = await openRedisStore(server.url)
    const watched = await told.watch('told', () => {}, 1_000)
    const holder = claimOf('mixed', { id: 'told.1' })
    expect(await told.claim(holder, 1_000)).toMatchObject({ kind: 'held' })
    const first = claimOf('mixed', { id: 'asks.1', whenBusy: 'queue' })
    const second = claimOf('mixed', { id: 'told.2', whenBusy: 'queue' })
    expect(await store.claim(first, 1_000)).toMatchObject({ kind: 'queued' })
    expect(await told.claim(second, 1_000)).toMatchObject({ kind: 'queued' })
    await told.release(holder, undefined, 1_000)
    const shown = await told.inspect('mixed', 1_000)
    expect(shown).toMatchObject({ holders: [{ id: 'asks.1' }], waiters: [{ id: 'told.2' }] })
    // And nobody is told who has gone.
    if (watched.kind === 'watching') watched.stop()
    await expect.poll(() => redisCommand(server, 'PUBSUB', 'CHANNELS', '*')).toEqual([])
    await store.release(first, undefined, 1_000)
    expect(await store.inspect('mixed', 1_000)).toMatchObject({ holders: [], waiters: [{ id: 'told.2' }] })
    await store.withdraw(second, 1_000)
    await told.close()
  })

  it('grants once, and no earlier token, when the client sends a claim again whose answer was lost', async () => {
    bridge.commands.length = 0
    bridge.mishap = once('lost-reply')
    const answer = await store.claim(claimOf('again'), 5_000)
    expect(answer).toMatchObject({ kind: 'held' })
    expect(bridge.commands.length).toBeGreaterThan(1)
    const shown = await store.inspect('again', 1_000)
    expect(shown).toMatchObject({
      holders: [{ id: 'session.1', token: (answer as { token: bigint }).token }],
    })
    expect(await store.release(claimOf('again'), undefined, 1_000)).toEqual({
      released: { kind: 'released' },
    })
  })

  it('does not call a release expired that the client sent again', async () => {
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('release again').acquire()
    bridge.mishap = once('lost-reply')
    expect(await lease.release()).toBe('unknown')
    await expect.poll(async () => (await holdfast.inspect('release again')).holders).toEqual([])
  })

  it('withdraws a claim that the client sent when it had been given up', async () => {
    let away = true
    bridge.mishap = () => (away ? 'lost-request' : undefined)
    const holdfast = new Holdfast(redisStore(client({ retry: { retries: 100, backoff: () => 20 } })), {
      requestTimeout: 200,
    })
    await expect(holdfast.mutex('late').acquire({ wait: 300 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    away = false
    await holdfast.close()
    expect(await leftoversAt(server)).toEqual([])
    expect(await store.claim(claimOf('late'), 1_000)).toMatchObject({ kind: 'held' })
    await store.release(claimOf('late'), undefined, 1_000)
  })

  it('goes on after scripts were forgotten', async () => {
    await redisCommand(server, 'SCRIPT', 'FLUSH')
    expect(await store.claim(claimOf('flushed'), 1_000)).toMatchObject({ kind: 'held' })
    await redisCommand(server, 'SCRIPT', 'FLUSH')
    expect(await store.release(claimOf('flushed'), undefined, 1_000)).toEqual({
      released: { kind: 'released' },
    })
  })

  const json = (status: number, error: string): Mishap => ({ status, body: JSON.stringify({ error }) })

  it.each<[string, Mishap, { retryable?: boolean; says: RegExp }]>([
    [
      'READONLY',
      json(400, "READONLY You can't write against a read only replica."),
      { says: /^READONLY.*replica/ },
    ],
    ['OOM', json(400, "OOM command not allowed when used memory > 'maxmemory'."), { says: /^OOM/ }],
    ['NOAUTH', json(400, 'NOAUTH Authentication required.'), { says: /^NOAUTH/, retryable: false }],
    [
      'NOPERM',
      json(400, "NOPERM this user has no permissions to run the 'evalsha' command"),
      { says: /^NOPERM/, retryable: false },
    ],
    [
      'HTTP 401',
      json(401, 'WRONGPASS invalid or missing http auth token'),
      { says: /^WRONGPASS/, retryable: false },
    ],
    ['HTTP 401 in other words', json(401, 'Unauthorized'), { says: /^Unauthorized/ }],
    [
      'HTTP 429',
      json(429, 'ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.'),
      { says: /^ERR max daily/ },
    ],
    ['HTTP 500', json(500, 'internal error'), { says: /^internal error$/ }],
    [
      'HTTP 502 of a proxy',
      { status: 502, body: '<html>Bearer c2VjcmV0LXRva2Vu</html>' },
      { says: /no JSON$/ },
    ],
    ['HTTP 500 without a word', { status: 500, body: '{}' }, { says: /neither a result nor an error/ }],
    ['HTTP 500, null', { status: 500, body: 'null' }, { says: /could not be made or read/ }],
    ['a page instead of an answer', { status: 200, body: '<html></html>' }, { says: /no JSON$/ }],
    ['nothing in it', { status: 200, body: '{}' }, { says: /could not be made or read/ }],
    [
      'another answer',
      { status: 200, body: '{"result":[["x"],{"y":1},null]}' },
      { says: /no script of this store|could not be made or read/ },
    ],
    ['a lost connection', 'lost-request', { says: /^fetch failed/ }],
    ['silence', 'silence', { says: /^no answer from the Redis server within 300 ms$/ }],
  ])('answers unknown, and gives no secret away: %s', async (_, mishap, { says, retryable }) => {
    for (const enableAutoPipelining of [false, true]) {
      const failing = redisStore(client({ enableAutoPipelining, retry: { retries: 0 } }))
      bridge.mishap = () => mishap
      const answer = await failing.claim(claimOf('secret name'), 300)
      expect(answer).toMatchObject({ kind: 'unknown' })
      const { cause, retryable: may } = answer as { cause: Error; retryable?: boolean }
      expect(cause.message).toMatch(says)
      expect(may).toBe(retryable)
      for (const text of [
        inspect(cause, { depth: 9, showHidden: true }),
        JSON.stringify(failing),
        inspect(failing),
      ]) {
        expect(text).not.toMatch(/secret name|session\.1|c2VjcmV0|127\.0\.0\.1/)
      }
      await failing.close()
    }
  })

  it('gives no secret away that cannot be sent', async () => {
    for (const options of [
      { token: 'geheim\nes', url: bridge.url },
      { token: 'geheim', url: 'http://user:geheim@127.0.0.1:1' },
    ]) {
      const answer = await redisStore(client({ ...options, retry: { retries: 0 } })).claim(
        claimOf('x'),
        1_000,
      )
      expect(answer).toMatchObject({ kind: 'unknown' })
      expect(inspect(answer, { depth: 9, showHidden: true })).not.toContain('geheim')
    }
  })

  // The client takes the reason for an answer.
  it.each([undefined, 'q', 'b', 1, '1', [1]])(
    'takes no word of a signal of its owner’s for an answer: %j',
    async (reason) => {
      const signal = AbortSignal.abort(reason)
      const held = claimOf('aborted')
      for (const responseEncoding of ['base64', false] as const) {
        const aborted = redisStore(client({ signal, responseEncoding, enableAutoPipelining: false }))
        for (const answer of [
          await aborted.claim(held, 1_000),
          ...(await aborted.renew([{ ...held, tokens: 0 }], 1_000)),
          (await aborted.release(held, undefined, 1_000)).released,
        ]) {
          expect(answer).toMatchObject({ kind: 'unknown' })
        }
      }
    },
  )

  it('takes none for an answer either to what was under way when it was aborted', async () => {
    const owner = new AbortController()
    const aborted = redisStore(
      client({ signal: owner.signal, responseEncoding: false, enableAutoPipelining: false }),
    )
    bridge.mishap = () => (owner.abort(1), 'silence')
    const [answer] = await aborted.renew([{ ...claimOf('aborted'), tokens: 0 }], 1_000)
    expect(answer).toMatchObject({ kind: 'unknown', cause: { message: 'the Redis client has been closed' } })
  })

  it('writes with a fence, and looks at the server, as far as HTTP goes', async () => {
    const write = { key: '{http}:x', value: 'v' }
    expect(await fencedWrite(client(), { ...write, token: 7n })).toEqual({ accepted: true, token: 7n })
    expect(await fencedWrite(client(), { ...write, token: 6n })).toEqual({ accepted: false, token: 7n })
    const codes = (await startupChecks(client())).map(({ level, code }) => `${level} ${code}`)
    expect(codes).toEqual(expect.arrayContaining(['ok version', 'ok clock']))
  })

  it('refuses what it cannot keep', () => {
    expect(() => redisStore(client(), { replicas: 1 })).toThrow(/replicas needs a client of ioredis or redis/)
    expect(() => redisStore(client(), { fencing: 'durable' })).toThrow(/connection of its own/)
    expect(() => redisCache(client() as never)).toThrow(/over HTTP reads what it gets as JSON/)
    expect(() => quorumStore([store, store, store].map(() => redisStore(client())))).toThrow(
      /through ioredis or redis/,
    )
  })
})

describe('a client for HTTP', () => {
  const fake = (answer: () => unknown): HttpRedisClient => ({
    eval: () => answer() as Promise<unknown>,
    evalsha: () => answer() as Promise<unknown>,
  })

  it('is known by its shape alone, and what it throws is an answer', async () => {
    const throwing = redisStore(
      fake(() => {
        throw new Error('no network')
      }),
    )
    expect(await throwing.claim(claimOf('x'), 1_000)).toMatchObject({
      kind: 'unknown',
      cause: { message: 'no network' },
    })
    const rejecting = redisStore(fake(() => Promise.reject(undefined as unknown as Error)))
    expect(await rejecting.claim(claimOf('x'), 1_000)).toMatchObject({ kind: 'unknown' })
    const numbers = redisStore(fake(() => Promise.resolve(1_750_000_000_000_000)))
    expect(await numbers.claim(claimOf('x'), 1_000)).toMatchObject({
      kind: 'held',
      token: 1_750_000_000_000_000n,
    })
    for (const garbage of [1, 1.5, NaN, 1e21, -1, true, null, {}, []]) {
      const store = redisStore(fake(() => Promise.resolve(garbage)))
      expect(await store.claim(claimOf('x'), 1_000)).toMatchObject({ kind: 'unknown' })
    }
  })

  it('is one also behind a proxy that knows what it has only when it is asked', async () => {
    const hidden = new Proxy({} as HttpRedisClient, {
      get: (_, name) => (fake(() => Promise.resolve('b')) as unknown as Record<PropertyKey, unknown>)[name],
    })
    expect(await redisStore(hidden).claim(claimOf('x'), 1_000)).toEqual({ kind: 'busy' })
  })

  it('is none of these', () => {
    const ioredis = new Redis({ lazyConnect: true })
    const upstash = new Upstash({ url: 'http://127.0.0.1:1', token: 'x' })
    const others = [
      ioredis.pipeline(),
      upstash.pipeline(),
      upstash.multi(),
      createClient().multi(),
      // ioredis 4, and redis 3.
      { status: 'ready', evalsha() {}, eval() {}, on() {} },
      { connected: true, evalsha() {}, eval() {}, on() {}, send_command() {} },
      { eval() {} },
    ]
    for (const other of others) {
      expect(() => redisStore(other as unknown as RedisClient)).toThrow(
        /client must be a client of the package/,
      )
    }
    expect(redisStore(ioredis).capabilities.wakeups).toBe('push')
    expect(redisStore(createClient()).capabilities.wakeups).toBe('push')
  })
})
