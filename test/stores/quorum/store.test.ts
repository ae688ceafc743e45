import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'
import { createSentinel } from 'redis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { Holdfast } from 'holdfast'
import { httpStore } from 'holdfast/http'
import type { NameInfo, Store, StoreEvent, Unknown } from 'holdfast/store'
import { memcachedStore } from 'holdfast/memcached'
import { memoryNode, memoryStore } from 'holdfast/memory'
import { openRedlockStore, quorumStore } from 'holdfast/quorum'
import { redisStore } from 'holdfast/redis'
import type { RedisStoreOptions } from 'holdfast/redis'
import { holdfastStore } from 'holdfast/remote'
import { startServer } from 'holdfast/server'
import { FaultProxy } from 'holdfast/testkit'

import { available, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { memcached } from '../../../scripts/services/memcached.mjs'
import { openAt, request, startServers, stopAll, urlOf } from './kit.ts'

const memory = (count: number): ReturnType<typeof memoryNode>[] =>
  Array.from({ length: count }, () => memoryNode())

describe('which stores form a quorum', () => {
  it('is refused for one store, and for one that is named twice', () => {
    const one = memoryNode()
    expect(() => quorumStore([one])).toThrow(/With one, use that store itself/)
    expect(() => quorumStore([one, ...memory(1), one])).toThrow(/stores 1 and 3 are the same store/)
  })

  it('is refused for options that make no sense', () => {
    for (const options of [
      { maxTtl: 5 },
      { nodeTimeout: 0 },
      { labels: ['a'] },
      { setUp: 'soon' as 'now' },
    ]) {
      expect(() => quorumStore(memory(3), options)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
    }
  })

  it('is refused for Redis stores with options that votes do not heed', () => {
    const client = new Redis({ lazyConnect: true })
    const member = (options: RedisStoreOptions): Store => redisStore(client, options)
    for (const options of [{ fencing: 'durable' }, { replicas: 1 }] as const) {
      expect(() => quorumStore([...memory(2), member(options)])).toThrow(
        /store 3 cannot be one of a quorum: .* without fencing: 'durable' and replicas/,
      )
    }
    expect(quorumStore([...memory(2), member({ prefix: 'other' })]).capabilities.fencing).toBe('monotonic')
    client.disconnect()
  })

  // A replica that is promoted has forgotten the votes that it had not heard of, and would vote at once.
  it('is refused for a Redis store that leads through Sentinels', () => {
    const at = { host: '127.0.0.1', port: 1 }
    const io = new Redis({ sentinels: [at], name: 'primary', lazyConnect: true })
    for (const client of [io, createSentinel({ name: 'primary', sentinelRootNodes: [at] })])
      expect(() => quorumStore([...memory(2), redisStore(client)])).toThrow(
        /store 3 cannot be one of a quorum: .*no Sentinel group/,
      )
    io.disconnect()
  })

  it('is refused for a URL that names a server twice, or an option that there is not', async () => {
    await expect(openRedlockStore('redlock://a,b,a:6379')).rejects.toThrow(/names a:6379 twice/)
    await expect(openRedlockStore('redlock://a,b,c?ttl=1')).rejects.toThrow(/option that no redlock URL has/)
    await expect(openRedlockStore('redlock://user:secret@a,a')).rejects.not.toThrow(/secret/)
  })

  it.each([2, 3, 4, 5, 6, 7])('needs more than half of %i', async (count) => {
    const nodes = memory(count)
    const [a, b] = [0, 1].map(() => quorumStore(nodes, { setUp: 'now' })) as [Store, Store]
    const majority = Math.floor(count / 2) + 1
    // So many are taken that the rest is no majority.
    for (const { votes } of nodes.slice(0, count - majority + 1)) {
      votes.vote({ ...request('x', 'other.1'), attempt: 1, probation: 0, interest: false })
    }
    expect((await a.claim(request('x', 'a.1'), 100)).kind).toBe('busy')
    nodes[0]?.votes.release({ name: 'x', id: 'other.1', attempt: 1 }, false)
    expect((await a.claim(request('x', 'a.2'), 100)).kind).toBe('held')
    expect((await b.claim(request('x', 'b.1'), 100)).kind).toBe('busy')
    const { released } = await a.release({ name: 'x', id: 'a.2' }, undefined, 100)
    expect(released).toMatchObject({ kind: 'released', confirmed: majority, of: count })
  })

  it('has no semaphores and no read-write locks, and says why', async () => {
    const store = quorumStore(memory(3), { setUp: 'now' })
    const answer = await store.claim({ ...request('x', 'a.1'), capacity: 2 }, 100)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false, cause: { code: 'UNSUPPORTED' } })
    expect(() => new Holdfast(store).semaphore('x', 2)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    )
  })
})

describe('what inspect shows', () => {
  it.each([
    ['more, too late', [0, 0, 0, 0, 1]],
    ['less', [1, 0, 1, 1, 1]],
  ])('is the token that was granted, although one store proposed %s', async (_what, ahead) => {
    const nodes = ahead.map((seconds) =>
      memoryNode({ now: () => ({ ms: 0, micros: (1_000 + seconds) * 1_000_000 }) }),
    )
    const store = quorumStore(nodes, { setUp: 'now' })
    const { token } = (await store.claim(request('x', 'a.1'), 100)) as { token: bigint }
    const { holders } = (await store.inspect('x', 100)) as NameInfo
    expect(holders).toMatchObject([{ id: 'a.1', token }])
  })
})

describe('a node that lost a lease', () => {
  it('holds it again after the next renewal, unless somebody was granted it meanwhile', async () => {
    const nodes = memory(3)
    const [first, second] = nodes as [ReturnType<typeof memoryNode>, ReturnType<typeof memoryNode>]
    const store = quorumStore(nodes, { setUp: 'now' })
    const claim = request('x', 'a.1', 10_000)
    await store.claim(claim, 100)
    const holders = (): string[] => nodes.map(({ votes }) => JSON.stringify(votes.inspect('x'), replacer))
    first.votes.release({ name: 'x', id: 'a.1', attempt: 0 }, false)
    expect(holders()[0]).toContain('free')
    expect(await store.renew([{ ...claim, tokens: 0 }], 100)).toMatchObject([{ kind: 'renewed' }])
    expect(holders().filter((one) => one.includes('a.1'))).toHaveLength(3)

    // Two nodes gave it to somebody else and got it back: whoever comes back late is told.
    for (const { votes } of [first, second]) {
      votes.release({ name: 'x', id: 'a.1', attempt: 0 }, false)
      votes.vote({ ...request('x', 'b.1'), attempt: 1, probation: 0, interest: false })
      votes.release({ name: 'x', id: 'b.1', attempt: 1 }, false)
    }
    expect(await store.renew([{ ...claim, tokens: 0 }], 100)).toEqual([{ kind: 'lost' }])
  })

  it('that is empty does not vote before the longest lease is over', async () => {
    const clock = { ms: 0 }
    const now = () => ({ ms: clock.ms, micros: clock.ms * 1000 })
    const nodes = Array.from({ length: 3 }, () => memoryNode({ now }))
    const store = quorumStore(nodes, { maxTtl: 1_000 })
    const problem = await store.claim(request('x', 'a.1'), 100)
    expect(problem).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
    expect((problem as { cause: Error }).cause.message).toMatch(/came up empty, and votes again in 1 s/)
    clock.ms += 1_000
    expect((await store.claim(request('x', 'a.1'), 100)).kind).toBe('held')
    nodes[0]?.votes.forgetEverything()
    expect((await store.release({ name: 'x', id: 'a.1' }, undefined, 100)).released.kind).toBe('released')
    expect((await store.claim(request('x', 'a.2'), 100)).kind).toBe('held')
  })
})

describe('a lock that somebody else takes away', () => {
  it('is away when that is said: no store that heard of it late brings it back', async () => {
    const nodes = memory(5)
    const slow = ({ votes }: ReturnType<typeof memoryNode>): Store => {
      const release = async (...words: Parameters<typeof votes.release>): Promise<unknown> => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        return votes.release(...words)
      }
      return Object.assign(memoryStore(), {
        votes: Object.assign(Object.create(votes) as object, { release }),
      }) as unknown as Store
    }
    const holder = quorumStore(nodes, { setUp: 'now' })
    const claim = request('x', 'a.1', 10_000)
    expect((await holder.claim(claim, 100)).kind).toBe('held')
    const other = quorumStore([...nodes.slice(0, 3), ...nodes.slice(3).map(slow)], { setUp: 'now' })
    expect((await other.release(claim, undefined, 1_000)).released).toMatchObject({ confirmed: 5 })
    expect(await holder.renew([{ ...claim, tokens: 0 }], 100)).toEqual([{ kind: 'lost' }])
  })
})

describe('a lease that is over before its renewal was heard of everywhere', () => {
  /** A store whose answers to renewals come when they are let through. */
  const slowly = ({ votes }: ReturnType<typeof memoryNode>, through: Promise<void>): Store => {
    const extend = async (...words: Parameters<typeof votes.extend>): Promise<unknown> => {
      const answer = votes.extend(...words)
      await through
      return answer
    }
    return Object.assign(memoryStore(), {
      votes: Object.assign(Object.create(votes) as object, { extend }),
    }) as unknown as Store
  }

  // How many are slow decides whether the outcome waits for them.
  it.each(
    [1, 2].flatMap((slow) =>
      (['release', 'withdraw'] as const).map((how): [number, 'release' | 'withdraw'] => [slow, how]),
    ),
  )('does not come back at %i slow stores after a %s', async (slow, how) => {
    const nodes = memory(3)
    let letThrough = (): void => {}
    const through = new Promise<void>((resolve) => (letThrough = resolve))
    const store = quorumStore(
      nodes.map((node, at) => (at < slow ? slowly(node, through) : node)),
      { setUp: 'now' },
    )
    const claim = request('x', 'a.1', 10_000)
    expect((await store.claim(claim, 100)).kind).toBe('held')
    for (const { votes } of nodes.slice(0, slow)) votes.release({ name: 'x', id: 'a.1', attempt: 0 }, false)
    const renewed = store.renew([{ ...claim, tokens: 0 }], 1_000)
    if (how === 'release') await store.release(claim, undefined, 1_000)
    else await store.withdraw(claim, 1_000)
    letThrough()
    await renewed
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(nodes.map(({ votes }) => votes.inspect('x'))).toEqual(nodes.map(() => ({ kind: 'free' })))
  })

  it('does not stay where it was taken up while it was released', async () => {
    const nodes = memory(3)
    let letThrough = (): void => {}
    const through = new Promise<void>((resolve) => (letThrough = resolve))
    const [{ votes }] = nodes as [ReturnType<typeof memoryNode>]
    // As a server that did not know the script, and was asked again behind the release.
    const extend = async (...words: Parameters<typeof votes.extend>): Promise<unknown> => {
      if (words[0][0]?.mode === 'restore') await through
      return votes.extend(...words)
    }
    const late = Object.assign(memoryStore(), {
      votes: Object.assign(Object.create(votes) as object, { extend }),
    }) as unknown as Store
    const store = quorumStore([late, ...nodes.slice(1)], { setUp: 'now' })
    const claim = request('x', 'a.1', 10_000)
    await store.claim(claim, 100)
    votes.release({ name: 'x', id: 'a.1', attempt: 0 }, false)
    expect(await store.renew([{ ...claim, tokens: 0 }], 1_000)).toMatchObject([{ kind: 'renewed' }])
    await store.release(claim, undefined, 1_000)
    letThrough()
    await expect.poll(() => votes.inspect('x')).toEqual({ kind: 'free' })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(votes.inspect('x')).toEqual({ kind: 'free' })
  })
})

describe('a list', () => {
  const pagesOf = async (store: Store, limit: number): Promise<string[][]> => {
    const pages: string[][] = []
    for (let cursor: string | undefined; ;) {
      const page = await store.list({ limit, ...(cursor === undefined ? {} : { cursor }) }, 1_000)
      if ('kind' in page) throw page.cause
      expect(page.names.length).toBeLessThanOrEqual(limit)
      pages.push([...page.names])
      if (page.cursor === undefined) return pages
      cursor = page.cursor
    }
  }
  const give = (node: ReturnType<typeof memoryNode> | undefined, name: string, id: string): unknown =>
    node?.votes.vote({ ...request(name, id, 60_000), attempt: 1, probation: 0, interest: false })

  it.each([1, 2, 3, 7, 100])('has every name that a majority has, once, in pages of %i', async (limit) => {
    for (const count of [2, 3, 4, 5]) {
      const nodes = memory(count)
      const majority = Math.floor(count / 2) + 1
      const held: string[] = []
      // Every set of stores that could have a name.
      for (let set = 1; set < 2 ** count; set++) {
        const at = nodes.filter((_, index) => (set >> index) % 2 === 1)
        for (const node of at) give(node, `name ${set}`, 'a.1')
        for (const node of nodes) if (!at.includes(node) && set % 3 === 0) give(node, `name ${set}`, 'b.1')
        const others = set % 3 === 0 ? count - at.length : 0
        if (at.length >= majority || others >= majority) held.push(`name ${set}`)
      }
      const names = (await pagesOf(quorumStore(nodes, { setUp: 'now' }), limit)).flat()
      expect(names.sort()).toEqual(held.sort())
    }
  })

  it('goes on without a store that does not answer, and fails without a majority', async () => {
    const nodes = memory(5)
    for (const node of nodes) give(node, 'x', 'a.1')
    const gone = ({ votes }: ReturnType<typeof memoryNode>): Store => {
      const none = (): Unknown => ({ kind: 'unknown', cause: new Error('gone') })
      const silent = Object.assign(Object.create(votes) as object, { names: none, inspect: none })
      return Object.assign(memoryStore(), { votes: silent }) as unknown as Store
    }
    const without = (down: number): Store =>
      quorumStore(
        nodes.map((node, at) => (at < down ? gone(node) : node)),
        { setUp: 'now' },
      )
    for (const down of [1, 2]) expect(await without(down).list({}, 1_000)).toEqual({ names: ['x'] })
    expect(await without(3).list({}, 1_000)).toMatchObject({
      kind: 'unknown',
      cause: { code: 'QUORUM_UNAVAILABLE' },
    })
  })

  it('refuses a cursor that no page came with', async () => {
    const store = quorumStore(memory(3), { setUp: 'now' })
    for (const cursor of ['x', '0', '9.9.', '.3.', '']) {
      expect(await store.list({ cursor }, 100)).toMatchObject({
        kind: 'unknown',
        retryable: false,
        cause: { code: 'INVALID_ARGUMENT' },
      })
    }
  })
})

describe('a node that does not answer', () => {
  it('is asked again after a pause that grows to a second, and costs nothing in between', async () => {
    const [a, b, gone] = memory(3) as [Store, Store, ReturnType<typeof memoryNode>]
    const asked: number[] = []
    let now = 0
    const vote = (): Unknown => {
      asked.push(now)
      return { kind: 'unknown', cause: new Error('gone') }
    }
    const votes = { value: Object.assign(Object.create(gone.votes) as object, { vote }) }
    const clock = { now: () => now, setTimer: () => () => {} }
    const store = quorumStore([a, b, Object.create(gone, { votes }) as Store], { setUp: 'now', clock })
    for (; now <= 3_000; now += 10) {
      expect((await store.claim(request(`at ${now}`, `a.${now}`), 100)).kind).toBe('held')
    }
    expect(asked).toEqual([0, 20, 60, 140, 300, 620, 1_260, 2_260])
  })
})

describe('wake-ups', () => {
  it('tell one who was refused, and only once, when the holder has left', async () => {
    const nodes = memory(5)
    const [a, b, c] = [0, 1, 2].map(() => quorumStore(nodes, { setUp: 'now' })) as [Store, Store, Store]
    const told: StoreEvent[] = []
    for (const [store, session] of [
      [b, 'b'],
      [c, 'c'],
    ] as const) {
      await store.watch(session, (event) => told.push(event), 100)
    }
    await a.claim(request('x', 'a.1'), 100)
    await b.claim(request('x', 'b.1'), 100)
    await c.claim(request('x', 'c.1'), 100)
    await a.release({ name: 'x', id: 'a.1' }, undefined, 100)
    await expect.poll(() => told).toEqual([{ kind: 'freed', name: 'x' }])
    for (const store of [a, b, c]) await store.close()
  })
})

describe.skipIf(!available('redis'))('on Redis servers', () => {
  let servers: Server[]
  beforeAll(async () => void (servers = await startServers(3)))
  afterAll(() => stopAll(servers))

  it('one server under several names is refused', async () => {
    const [{ port }, other] = servers as [Server, Server]
    const url = `redlock://127.0.0.1:${port},localhost:${port},${other.host}:${other.port}`
    await expect(openRedlockStore(url)).rejects.toThrow(/are one server: it would have two votes/)
  })

  it('several databases of one server are refused', async () => {
    const [{ host, port }] = servers as [Server]
    const clients = [0, 1, 2, 3, 4].map((db) => new Redis({ host, port, db }))
    const store = quorumStore(
      clients.map((client) => redisStore(client)),
      { setUp: 'now', labels: clients.map((_, db) => `db ${db}`) },
    )
    const answer = await store.claim(request('x', 'a.1'), 1_000)
    expect(answer).toMatchObject({ kind: 'unknown', retryable: false, cause: { code: 'INVALID_ARGUMENT' } })
    expect((answer as Unknown).cause).toHaveProperty(
      'message',
      expect.stringMatching(
        /^db \d and db \d are one server: it would have two votes, .* one database of it$/,
      ),
    )
    await store.close()
    for (const client of clients) client.disconnect()
  })

  it('works through both drivers, which see the same locks, and are woken', async () => {
    const [a, b] = [await openAt(servers), await openAt(servers, { driver: 'redis' })]
    const told: StoreEvent[] = []
    const watch = await b.watch('b', (event) => told.push(event), 1_000)
    expect((await a.claim(request('x', 'a.1'), 1_000)).kind).toBe('held')
    expect((await b.claim(request('x', 'b.1'), 1_000)).kind).toBe('busy')
    await a.release({ name: 'x', id: 'a.1' }, undefined, 1_000)
    await expect.poll(() => told).toEqual([{ kind: 'freed', name: 'x' }])
    expect((await b.claim(request('x', 'b.1'), 1_000)).kind).toBe('held')
    if (watch.kind === 'watching') watch.stop()
    await a.close()
    await b.close()
  })

  it('needs one request to each server for an acquire, and one for a release', async () => {
    const store = await openAt(servers)
    const [server] = servers as [Server]
    const calls = async (): Promise<number> => {
      const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
    }
    await store.claim(request('warm', 'a.0'), 1_000)
    await store.release({ name: 'warm', id: 'a.0' }, undefined, 1_000)
    // A majority decides, so this server may still have to hear of what is over: all rounds are counted together.
    const before = await calls()
    const rounds = 20
    for (let round = 1; round <= rounds; round++) {
      const { kind } = await store.claim(request('counted', `a.${round}`), 1_000)
      expect(kind).toBe('held')
      await store.release({ name: 'counted', id: `a.${round}` }, undefined, 1_000)
    }
    await expect.poll(calls).toBeGreaterThanOrEqual(before + 2 * rounds)
    // Where a new second began, there is one more in which the servers agree.
    expect((await calls()) - before).toBeLessThan(2.5 * rounds)
    await store.close()
  })

  it('renews what it may beside a name that its user may not use at one server', async () => {
    const own = await startServers(3)
    const places = own.map(({ host, port }) => ({ host, port }))
    await (await openAt(places)).close()
    for (const [at, server] of own.entries()) {
      const keys = at === 0 ? ['~hf:v:{mine*', '~hf:v:node'] : ['~*']
      await redisCommand(server, 'ACL', 'SETUSER', 'some', 'on', '>password', ...keys, '&*', '+@all')
    }
    const clients = own.map(({ port }) => new Redis(port, { username: 'some', password: 'password' }))
    for (const client of clients) client.on('error', () => {})
    const store = quorumStore(
      clients.map((client) => redisStore(client)),
      { maxTtl: 5_000, setUp: 'now' },
    )
    // Until all have said which servers they are.
    const ready = async (): Promise<string> => (await store.claim(request('mine'), 1_000)).kind
    await expect.poll(ready, { timeout: 5_000 }).toBe('held')
    // And until the first one is asked: it may be left alone for a moment, for it was not there yet when it was asked before.
    let asked = 0
    const votes = async (): Promise<unknown> => {
      asked++
      await store.claim(request(`mine:ready:${asked}`, `a.ready.${asked}`), 1_000)
      const known = Array.from({ length: asked }, (_, at) => `hf:v:{mine:ready:${at + 1}}`)
      return redisCommand(own[0] as Server, 'EXISTS', ...known)
    }
    await expect.poll(votes, { timeout: 10_000 }).toBeGreaterThan(0)
    const names = Array.from({ length: 6 }, (_, at) => (at === 2 ? 'theirs' : `mine:${at}`))
    for (const name of names)
      expect(await store.claim(request(name, `a.${name}`, 5_000), 1_000)).toMatchObject({ kind: 'held' })
    const cells = names.map((name) => `hf:v:{${name}}`)
    await expect.poll(() => redisCommand(own[0] as Server, 'EXISTS', ...cells)).toBe(names.length - 1)
    // From now on the other two have to keep everything.
    await own[2]?.kill()
    const renewals = names.map((name) => ({ ...request(name, `a.${name}`, 5_000), tokens: 0 }))
    expect(await store.renew(renewals, 1_000)).toMatchObject(
      names.map((name) => ({ kind: name === 'theirs' ? 'unknown' : 'renewed' })),
    )
    await store.close()
    for (const client of clients) client.disconnect()
    await stopAll(own)
  })

  it('shows what is held beside keys that it cannot read', async () => {
    const store = await openAt(servers, { maxTtl: 30_000 })
    await store.claim(request('seen held', 'a.1', 30_000), 1_000)
    for (const server of servers) {
      await redisCommand(server, 'HSET', 'hf:v:{seen strange}', 'f', 'abc', 'some', 'thing')
      await redisCommand(server, 'SET', 'hf:v:{seen text}', 'x')
      await redisCommand(server, 'HSET', 'hf:v:{seen later}', 'f', '1', 'v', '9')
    }
    const page = await store.list({ prefix: 'seen' }, 2_000)
    // Somebody may hold what is kept by a later version.
    expect('kind' in page ? page : [...new Set(page.names)]).toEqual(['seen held', 'seen later'])
    // One server alone cannot read it: that takes nothing away.
    await redisCommand(servers[0] as Server, 'DEL', 'hf:v:{seen held}')
    await redisCommand(servers[0] as Server, 'SET', 'hf:v:{seen held}', 'x')
    expect(await store.list({ prefix: 'seen held' }, 2_000)).toEqual({ names: ['seen held'] })
    await store.close()
    for (const server of servers) await redisCommand(server, 'FLUSHDB')
  })

  it('shows what is held among many keys, page by page, each in its time', async () => {
    const proxies = await Promise.all(servers.map((server) => FaultProxy.open(server)))
    const store = await openAt(proxies, { maxTtl: 30_000 })
    const held = Array.from({ length: 5 }, (_, at) => `shown ${at}`)
    for (const [at, name] of held.entries()) await store.claim(request(name, `a.${at}`, 30_000), 1_000)
    const some = "for i = 1, 10000 do redis.call('SET', ARGV[1] .. ':' .. i, 'x') end"
    for (const server of servers) {
      for (let lot = 0; lot < 3; lot++) await redisCommand(server, 'EVAL', some, '0', `other${lot}`)
    }
    // Thirty steps through the keys of each server take longer than a page.
    for (const proxy of proxies) proxy.set('replies', { latency: 25 })
    const names: string[] = []
    let pages = 0
    for (let cursor: string | undefined; ;) {
      const page = await store.list({ prefix: 'shown', ...(cursor === undefined ? {} : { cursor }) }, 2_000)
      if ('kind' in page) throw page.cause
      names.push(...page.names)
      pages++
      if (page.cursor === undefined) break
      cursor = page.cursor
    }
    await store.close()
    for (const proxy of proxies) await proxy.close()
    for (const server of servers) await redisCommand(server, 'FLUSHDB')
    expect(names.sort()).toEqual(held)
    expect(pages).toBeGreaterThan(1)
  })

  it('resolves a split between three clients soon', async () => {
    const stores = await Promise.all([1, 2, 3].map(() => openAt(servers)))
    const holdfasts = stores.map((store) => new Holdfast(store, { ttl: 1_000, closeStore: true }))
    const took: number[] = []
    for (let round = 0; round < 30; round++) {
      const began = performance.now()
      const leases = holdfasts.map(async (holdfast) => {
        const lease = await holdfast.mutex(`split ${round}`).acquire({ wait: 5_000 })
        took.push(performance.now() - began)
        await lease.release()
      })
      await Promise.all(leases)
    }
    expect(Math.max(...took)).toBeLessThan(4_000)
    for (const holdfast of holdfasts) await holdfast.close()
  })

  it.each(['?maxTtl=5', '?prefix=a%20b', '?nodeTimeout=0'])(
    'leaves no connection behind when %s is refused',
    async (options) => {
      const connections = async (): Promise<number> =>
        String(await redisCommand(servers[0] as Server, 'CLIENT', 'LIST'))
          .trim()
          .split('\n').length
      const before = await connections()
      await expect(openRedlockStore(`${urlOf(servers)}${options}`)).rejects.toThrow(/must be/)
      await sleep(50)
      await expect.poll(connections).toBeLessThanOrEqual(before)
    },
  )

  it('says nothing of a password', async () => {
    const url = urlOf(servers).replace('redlock://', 'redlock://user:hunter2@')
    await expect(openRedlockStore(url)).rejects.not.toThrow(/hunter2/)
  })
})

describe.skipIf(!available('memcached'))('of stores that have no votes', () => {
  it('excludes and renews, and says that its tokens are weak', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => memcached()))
    const open = (): Store =>
      quorumStore(
        servers.map(({ url }) => memcachedStore(url)),
        { maxTtl: 60_000, nodeTimeout: 1_000 },
      )
    const [a, b] = [open(), open()]
    expect(a.capabilities).toMatchObject({ fencing: 'weak', wakeups: 'poll', queue: false })
    const claim = request('x', 'a.1', 5_000)
    expect((await a.claim(claim, 1_000)).kind).toBe('held')
    expect((await b.claim(request('x', 'b.1', 5_000), 1_000)).kind).toBe('busy')
    expect(await a.renew([{ ...claim, tokens: 0 }], 1_000)).toMatchObject([{ kind: 'renewed' }])
    expect((await a.release(claim, undefined, 1_000)).released.kind).toBe('released')
    // A majority has let go. What the other one still knows of is taken back in the background, and a try does not wait for that.
    let tries = 2
    await vi.waitFor(async () => {
      expect((await b.claim(request('x', `b.${tries++}`, 5_000), 1_000)).kind).toBe('held')
    })
    await a.close()
    await b.close()
    await stopAll(servers)
  })

  it('may be mixed with others', () => {
    expect(quorumStore([...memory(2), memoryStore()]).capabilities.fencing).toBe('weak')
  })
})

describe('of lock servers', () => {
  it.each([
    ['streams', holdfastStore],
    ['requests', (url: string): Store => httpStore(url.replace('holdfast:', 'http:'))],
  ] as const)('excludes, renews and releases over %s', async (_, storeAt) => {
    const servers = await Promise.all(
      [1, 2, 3].map(() => startServer({ listen: '127.0.0.1:0', state: null })),
    )
    const open = (): Store =>
      quorumStore(
        servers.map(({ url }) => storeAt(url)),
        { maxTtl: 60_000, nodeTimeout: 1_000 },
      )
    const [a, b] = [open(), open()]
    const claim = request('x', 'a.1', 5_000)
    expect(await a.claim(claim, 2_000)).toMatchObject({ kind: 'held' })
    expect(await b.claim(request('x', 'b.1', 5_000), 2_000)).toMatchObject({ kind: 'busy' })
    expect(await a.renew([{ ...claim, tokens: 0 }], 2_000)).toMatchObject([{ kind: 'renewed' }])
    expect((await a.release(claim, undefined, 2_000)).released).toMatchObject({ kind: 'released' })
    await a.close()
    await b.close()
    for (const server of servers) await server.close({ grace: 50 })
  })
})

const replacer = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)
