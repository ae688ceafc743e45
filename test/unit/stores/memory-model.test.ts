import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { emptyQueue, step, view } from '../../../src/core/claim-queue.ts'
import type { QueueState } from '../../../src/core/claim-queue.ts'
import type { ClaimRequest, ListPage, StoreEvent } from '../../../src/core/contract.ts'
import { toRecord } from '../../../src/core/queue-record.ts'
import { memoryNode } from '../../../src/stores/memory/index.ts'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

const NAMES = ['a', 'b', 'b2', 'c']
const request = (name: string, id: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 100,
  patience: 50,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'me',
  ...more,
})

interface Step {
  readonly do: 'claim' | 'renew' | 'release' | 'withdraw' | 'expire' | 'pass' | 'copy'
  readonly name: number
  readonly who: number
  readonly ms: number
}

const steps = fc.array(
  fc.record({
    do: fc.constantFrom<Step['do']>(
      'claim',
      'claim',
      'claim',
      'renew',
      'release',
      'withdraw',
      'expire',
      'pass',
      'copy',
    ),
    name: fc.nat(NAMES.length - 1),
    who: fc.nat(5),
    ms: fc.constantFrom(1, 20, 50, 100, 60_000),
  }),
  { maxLength: 40 },
)

/** The store, and beside it one queue a name for ever, by the rule alone. */
class Pair {
  readonly env = new VirtualEnv()
  store = this.open()
  readonly queues = new Map(NAMES.map((name) => [name, emptyQueue()] as const))

  open(): MemoryStore {
    const store = new MemoryStore({ now: () => this.env.instant() })
    for (let who = 0; who <= 5; who++) store.watch(`s${who}`, () => {})
    return store
  }

  act({ do: what, name: at, who, ms }: Step): readonly [unknown, unknown] | undefined {
    const name = NAMES[at] as string
    const id = `s${who}.${at}`
    const queue = this.queues.get(name) as QueueState
    const now = this.env.instant()
    switch (what) {
      case 'claim':
        return [
          this.store.claim(request(name, id)),
          step(queue, { kind: 'claim', request: request(name, id) }, now).answer,
        ]
      case 'renew': {
        const all = NAMES.map((each, index) => ({ ...request(each, `s${who}.${index}`), tokens: 0 }))
        const rule = all.map(
          (each) =>
            step(this.queues.get(each.name) as QueueState, { kind: 'renew', request: each }, now).answer,
        )
        return [this.store.renew(all), rule]
      }
      case 'release':
        return [
          this.store.release({ name, id }, undefined),
          step(queue, { kind: 'release', claim: { name, id } }, now).answer,
        ]
      case 'withdraw':
        return [
          this.store.withdraw({ name, id }),
          step(queue, { kind: 'withdraw', claim: { name, id } }, now).answer,
        ]
      case 'expire':
        this.store.expire()
        return undefined
      case 'pass':
        this.env.stall(ms)
        return undefined
      case 'copy': {
        const states = [...this.store.states()].map(([at, state]) => [at, toRecord(state)] as const)
        const records = JSON.parse(JSON.stringify(states)) as typeof states
        this.store = this.open()
        for (const [at, record] of records) this.store.takeUp(at, record)
        return undefined
      }
    }
  }
}

/** Which tokens they are differs: one store gives those of all its names, and its leases may end a little later than it says. */
const alike = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) =>
      key === 'token' ? 'some' : key === 'retryAfter' ? undefined : part,
    ),
  )

describe('the memory store, whatever is asked of it', () => {
  it('answers as one queue a name would, also over a copy of what it knows', () => {
    fc.assert(
      fc.property(steps, (run) => {
        const pair = new Pair()
        for (const each of run) {
          // Who is granted something by a look at all names is granted it then, and by the rule when somebody asks.
          if (each.do === 'expire') continue
          const [answer, rule] = pair.act(each) ?? [null, null]
          expect(alike(answer)).toEqual(alike(rule))
        }
      }),
      { numRuns: 300 },
    )
  })

  it('shows, lists and ends what is there', () => {
    fc.assert(
      fc.property(steps, (run) => {
        const pair = new Pair()
        for (const each of run) {
          if (each.do === 'copy' || each.do === 'expire') continue
          pair.act(each)
          const { store, queues } = pair
          const now = pair.env.instant()
          const seen = NAMES.map((name) => view(queues.get(name) as QueueState, name, now))
          for (const one of seen)
            expect(alike(store.inspect(one.name))).toEqual(
              alike({ ...one, capacity: store.inspect(one.name).capacity }),
            )
          const used = seen
            .filter(({ holders, waiters }) => holders.length + waiters.length > 0)
            .map(({ name }) => name)
          expect(store.list({})).toEqual({ names: used })
          expect(store.list({ prefix: 'b' }).names).toEqual(used.filter((name) => name.startsWith('b')))
          const pages: string[] = []
          for (let cursor: string | undefined = ''; cursor !== undefined;) {
            const page: ListPage = store.list({ limit: 2, cursor })
            pages.push(...page.names)
            expect(page.names.length).toBe(Math.min(2, used.length - pages.length + page.names.length))
            cursor = page.cursor
            expect(cursor === undefined).toBe(pages.length === used.length)
          }
          expect(pages).toEqual(used)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('gives tokens that grow by name, whatever it has forgotten meanwhile', () => {
    fc.assert(
      fc.property(steps, (run) => {
        const pair = new Pair()
        const last = new Map<string, bigint>()
        for (const each of run) {
          const name = NAMES[each.name] as string
          const before = pair.store.inspect(name).holders[0]
          // What is written down has no tokens of names that are free: there it is the clock that goes on.
          if (each.do === 'copy') pair.env.stall(1)
          pair.act(each)
          const holder = pair.store.inspect(name).holders[0]
          if (holder === undefined || holder.id === before?.id) continue
          expect(holder.token).toBeGreaterThan(last.get(name) ?? 0n)
          last.set(name, holder.token ?? 0n)
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('the memory store', () => {
  const open = (): { env: VirtualEnv; store: MemoryStore; told: StoreEvent[] } => {
    const env = new VirtualEnv()
    const told: StoreEvent[] = []
    const store = new MemoryStore({ now: () => env.instant() })
    store.watch('b', (event) => told.push(event))
    return { env, store, told }
  }

  it('promises no lease that is longer than a timer can wait', () => {
    expect(open().store.capabilities).toMatchObject({ minTtl: 1, maxTtl: 2_147_483_647, earlyExpiry: 0 })
  })

  it('knows when each lease ends, and the last of them', () => {
    const { env, store } = open()
    expect(store.furthestEnd()).toBe(0)
    const start = env.instant().ms
    store.claim(request('x', 'a.1', { ttl: 100 }))
    store.claim(request('y', 'a.2', { ttl: 300 }))
    store.claim(request('z', 'a.3', { ttl: 200 }))
    expect(store.endOf({ name: 'x', id: 'a.1' })).toBe(start + 100)
    expect(store.endOf({ name: 'x', id: 'a.2' })).toBe(0)
    expect(store.endOf({ name: 'w', id: 'a.1' })).toBe(0)
    expect(store.furthestEnd()).toBe(start + 300)
  })

  it('grants what has run out at once when it looks, and forgets names that nobody asks about', async () => {
    const { env, store, told } = open()
    store.claim(request('x', 'a.1'))
    store.claim(request('x', 'b.1', { patience: 1_000 }))
    store.claim(request('y', 'a.2'))
    store.withdraw({ name: 'z', id: 'a.3' })
    env.stall(99)
    store.expire()
    await env.settle()
    expect(told).toEqual([])
    env.stall(1)
    store.expire()
    await env.settle()
    expect(told).toMatchObject([{ kind: 'granted', name: 'x', id: 'b.1' }])
    const names = (): string[] => [...(store as unknown as { queues: Map<string, unknown> }).queues.keys()]
    expect(names()).toContain('z')
    env.stall(60_000)
    store.expire()
    // The last one that fell idle is kept.
    expect(names().length).toBeLessThanOrEqual(1)
  })

  it('drops who waits and is silent for too long when it looks', () => {
    const { env, store } = open()
    store.claim(request('x', 'a.1', { ttl: 10_000 }))
    store.claim(request('x', 'b.1', { patience: 50 }))
    const waiting = (): number =>
      (store as unknown as { queues: Map<string, QueueState> }).queues.get('x')?.waiters.size ?? 0
    env.stall(49)
    store.expire()
    expect(waiting()).toBe(1)
    env.stall(1)
    store.expire()
    expect(waiting()).toBe(0)
  })

  it('tells nobody who has stopped to listen, or any more when it is closed', async () => {
    const { env, store, told } = open()
    const other: StoreEvent[] = []
    const watch = store.watch('c', (event) => other.push(event))
    const go = async (id: string): Promise<void> => {
      store.claim(request(id, `a.${id}`))
      store.claim(request(id, id))
      store.release({ name: id, id: `a.${id}` }, undefined)
      await env.settle()
    }
    await go('c.1')
    expect(other).toMatchObject([{ kind: 'granted', id: 'c.1' }])
    watch.stop()
    await go('c.2')
    await go('b.1')
    expect([other.length, told.length]).toEqual([1, 1])
    store.close()
    await go('b.2')
    expect(told).toHaveLength(1)
  })

  it('gives tokens that are the time in microseconds, so that those of the next process are larger', async () => {
    const before = BigInt(Date.now()) * 1_000n
    const store = new MemoryStore({})
    const answer = store.claim(request('x', 'a.1'))
    const node = memoryNode().votes.vote({
      ...request('x', 'a.1'),
      attempt: 1,
      probation: 0,
      interest: false,
    })
    const after = BigInt(Date.now()) * 1_000n
    // The two clocks of a process may differ by some milliseconds; a quorum's tokens begin with the second.
    const token = answer.kind === 'held' ? answer.token : 0n
    expect(token).toBeGreaterThan(before - 1_000_000n)
    expect(token).toBeLessThan(after + 1_000_000n)
    const vote = node.kind === 'granted' ? node.token : 0n
    expect(vote).toBeGreaterThan(before - 2_000_000n)
    expect(vote).toBeLessThan(after + 1_000_000n)
    await Promise.resolve()
  })
})

describe('a memory node', () => {
  const asked = (
    votes: ReturnType<typeof memoryNode>['votes'],
    name: string,
    id: string,
    probation = 0,
    ttl = 100,
  ): string => votes.vote({ ...request(name, id, { ttl }), attempt: 1, probation, interest: true }).kind

  it('that is empty looks on for as long as it is told to, from when it was first seen', () => {
    const env = new VirtualEnv()
    const { votes } = memoryNode({ now: () => env.instant() })
    expect(votes.identify(1_000)).toMatchObject({ kind: 'node', readyIn: 1_000 })
    env.stall(400)
    expect(votes.vote({ ...request('x', 'a.1'), attempt: 1, probation: 1_000, interest: false })).toEqual({
      kind: 'not-ready',
      readyIn: 600,
    })
    expect(votes.identify(1_000).readyIn).toBe(600)
    env.stall(600)
    expect(votes.identify(1_000).readyIn).toBe(0)
    expect(asked(votes, 'x', 'a.1', 1_000)).toBe('granted')
    votes.forgetEverything()
    expect(asked(votes, 'x', 'a.2', 1_000)).toBe('not-ready')
    const fresh = memoryNode({ now: () => env.instant() }).votes
    expect(asked(fresh, 'x', 'a.1', 0)).toBe('granted')
    expect(asked(fresh, 'y', 'a.1', 1_000)).toBe('granted')
    expect(fresh.identify(0).server).not.toBe(votes.identify(0).server)
  })

  it('lists what is held, and tells who listens', async () => {
    const env = new VirtualEnv()
    const { votes } = memoryNode({ now: () => env.instant() })
    const told: StoreEvent[] = []
    const watch = votes.watch('b', (event) => told.push(event))
    for (const name of ['a', 'ab', 'b']) asked(votes, name, `s.${name}`)
    expect(votes.names({ prefix: 'a' })).toEqual({ names: ['a', 'ab'] })
    asked(votes, 'a', 'b.1')
    votes.release({ name: 'a', id: 's.a', attempt: 1 }, true)
    expect(told).toEqual([])
    await env.settle()
    expect(told).toEqual([{ kind: 'freed', name: 'a' }])
    expect(votes.names({ prefix: 'a' })).toEqual({ names: ['ab'] })
    watch.stop()
    asked(votes, 'b', 'b.2')
    votes.withdraw({ name: 'b', id: 's.b' })
    await env.settle()
    expect(told).toHaveLength(1)
    env.stall(100)
    expect(votes.names({})).toEqual({ names: [] })
    expect(votes.inspect('never')).toEqual({ kind: 'free' })
  })

  it('forgets names in time, and gives no token twice', () => {
    const env = new VirtualEnv()
    const { votes } = memoryNode({ now: () => env.instant() })
    const { cells } = votes as unknown as { cells: Map<string, unknown> }
    const token = (): number => {
      const answer = votes.vote({
        ...request('x', `s.${env.mono()}`, { tokens: 50 }),
        attempt: 1,
        probation: 0,
        interest: false,
      })
      return answer.kind === 'granted' ? Number(answer.token) : 0
    }
    const first = token()
    asked(votes, 'long', 's.long', 0, 60_000)
    for (let at = 0; at < 998; at++) asked(votes, `n ${at}`, `s.${at}`)
    expect(cells.size).toBe(1_000)
    env.stall(1_000)
    // Their leases are over, but the clock is not far enough beyond their tokens.
    asked(votes, 'one more', 's.m')
    expect(cells.size).toBe(1_001)
    expect(token()).toBeGreaterThanOrEqual(first + 50)
    env.stall(10_000)
    for (let at = 0; at < 1_100; at++) asked(votes, `m ${at}`, `s.${at}`)
    expect(cells.size).toBeLessThan(1_200)
    expect(cells.has('n 5')).toBe(false)
    expect(cells.has('long')).toBe(true)
  })
})
