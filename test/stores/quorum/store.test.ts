import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { Holdfast } from 'holdfast'
import type { NameInfo, Store, StoreEvent, Unknown } from 'holdfast'
import { memcachedStore } from 'holdfast/memcached'
import { memoryNode, memoryStore } from 'holdfast/memory'
import { openRedlockStore, quorumStore } from 'holdfast/quorum'
import { redisStore } from 'holdfast/redis'

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
    expect(Math.max(...took)).toBeLessThan(2_000)
    for (const holdfast of holdfasts) await holdfast.close()
  })

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

const replacer = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)
