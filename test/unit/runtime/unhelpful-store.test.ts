import { describe, expect, it } from 'vitest'

import { BrokenStoreError, Holdfast } from '../../../src/index.ts'
import type { ClaimRequest, Store, StoreEvent, StoreListener } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { Random } from '../../../src/testkit/random.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

/**
 * Stores that keep to the letter of the contract and are of no use: each method has one answer, for ever, and each request may be followed by
 * a message. Whatever they say, nobody asks them without a pause.
 */

const SECONDS = 4
/** For each task that waits: hints are followed a hundred times a second, after fifty at once, with a claim and a question each. */
const PER_TASK_AND_SECOND = 300
/** A store that is asked more often than this stops answering, so that a loop without a pause comes to an end. */
const MOST = 20_000

type Answer = Readonly<Record<string, unknown>>

const HINTS = [undefined, 0, -5, 0.001, 1, 20, 1e9, Infinity]
const COUNTS = [1, 3, 64]

interface Plan {
  readonly claim: readonly Answer[]
  readonly renew: readonly Answer[]
  readonly release: Answer
  readonly withdraw: Answer
  readonly downgrade: Answer
  readonly watch: 'watching' | 'unknown'
  readonly event: 'none' | 'granted' | 'freed' | 'gap' | 'contended'
  readonly queue: boolean
  readonly push: boolean
  readonly late: 'at once' | 'soon'
}

function planFrom(seed: number): Plan {
  const random = new Random(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T
  const unknown: Answer = { kind: 'unknown', cause: new Error('no') }
  const hinted = (kind: string): Answer => {
    const retryAfter = pick(HINTS)
    return { kind, ...(retryAfter === undefined ? {} : { retryAfter }) }
  }
  const held = (): Answer => ({
    kind: 'held',
    token: 1n,
    count: pick(COUNTS),
    contended: pick([true, false]),
  })
  const waits = (): Answer =>
    pick([hinted('queued'), hinted('busy'), hinted('queued'), hinted('busy'), unknown])
  const renewal = (): Answer =>
    pick([
      held(),
      { kind: 'renewed', contended: pick([true, false]) },
      hinted('queued'),
      { kind: 'lost' },
      unknown,
    ])
  // Mostly one answer for ever, sometimes two in turn.
  const one = <T>(make: () => T): T[] => (random.next() < 0.7 ? [make()] : [make(), make()])
  const released = (): Answer => pick([{ kind: 'released' }, { kind: 'not-held' }, unknown])
  return {
    claim: one(() => (random.next() < 0.25 ? held() : waits())),
    renew: one(renewal),
    release: released(),
    withdraw: released(),
    downgrade: pick([{ kind: 'downgraded' }, { kind: 'lost' }, unknown]),
    watch: random.next() < 0.85 ? 'watching' : 'unknown',
    event: pick(['none', 'none', 'granted', 'freed', 'gap', 'contended']),
    queue: random.next() < 0.8,
    push: random.next() < 0.8,
    late: pick(['at once', 'soon']),
  }
}

/** How often it was asked, and how many claims it granted. */
class Useless {
  requests = 0
  grants = 0
  private readonly env: VirtualEnv
  private readonly plan: Plan
  private tell: StoreListener = () => undefined

  constructor(env: VirtualEnv, plan: Plan) {
    this.env = env
    this.plan = plan
  }

  get store(): Store {
    const { plan } = this
    const { claim, renew, release, withdraw, downgrade } = plan
    const capabilities = {
      ...memoryStore().capabilities,
      queue: plan.queue,
      wakeups: plan.push ? 'push' : 'poll',
    } as const
    const claimed = (request: ClaimRequest): Answer => {
      const answer = this.next(claim)
      const fits = answer.kind !== 'queued' || request.whenBusy === 'queue'
      if (answer.kind === 'held') this.grants++
      return fits ? answer : { ...answer, kind: 'busy' }
    }
    return {
      kind: 'useless',
      capabilities,
      claim: (request: ClaimRequest) => this.answer(claimed(request), request),
      renew: (requests: readonly ClaimRequest[]) =>
        this.answer(
          requests.map(() => this.next(renew)),
          requests[0],
        ),
      release: (request: ClaimRequest, next: ClaimRequest | undefined) =>
        this.answer(
          { released: release, ...(next === undefined ? {} : { next: claimed(next) }) },
          next ?? request,
        ),
      withdraw: (request: ClaimRequest) => this.answer(withdraw, request),
      downgrade: (request: ClaimRequest) => this.answer(downgrade, request),
      watch: (_: string, listener: StoreListener) => {
        if (plan.watch === 'watching') this.tell = listener
        const stop = (): void => void (this.tell = () => undefined)
        return this.answer(
          plan.watch === 'watching' ? { kind: 'watching', stop } : { kind: 'unknown', cause: 0 },
          undefined,
        )
      },
      inspect: (name: string) => this.answer({ name, capacity: 1, holders: [], waiters: [] }, undefined),
      list: () => this.answer({ names: [] }, undefined),
      close: () => undefined,
    } as unknown as Store
  }

  private next(answers: readonly Answer[]): Answer {
    return answers[this.requests % answers.length] as Answer
  }

  private answer(answer: unknown, request: ClaimRequest | undefined): unknown {
    this.requests++
    if (this.requests > MOST) return new Promise(() => undefined)
    const event = request && this.eventAbout(request)
    if (this.plan.late === 'at once') {
      if (event !== undefined) queueMicrotask(() => this.tell(event))
      return answer
    }
    return this.env.sleep(0.01).then(() => {
      if (event !== undefined) queueMicrotask(() => this.tell(event))
      return answer
    })
  }

  private eventAbout({ name, id }: ClaimRequest): StoreEvent | undefined {
    switch (this.plan.event) {
      case 'none':
        return undefined
      case 'gap':
        return { kind: 'gap' }
      case 'freed':
        return { kind: 'freed', name }
      case 'contended':
        return { kind: 'contended', name, id }
      case 'granted':
        return { kind: 'granted', name, id, token: 1n, count: 1, contended: true }
    }
  }
}

/** Everything that waits, at a store that is of no use. Says how often it was asked, and by how many. */
async function visit(seed: number): Promise<{ asked: number; allowed: number; plan: Plan }> {
  const env = new VirtualEnv({ seed })
  const plan = planFrom(seed)
  const useless = new Useless(env, plan)
  const holdfast = new Holdfast(useless.store, { env, ttl: 3000, requestTimeout: 500, leakWarnings: false })
  const lock = holdfast.readWriteLock('c')
  const wait = SECONDS * 1000
  const quietly = (promise: Promise<unknown>): Promise<unknown> => promise.catch(() => undefined)
  const work = (): Promise<void> => env.sleep(100)
  const tasks = [
    ...[1, 2, 3].map(() => holdfast.mutex('x').run(work, { wait })),
    ...[1, 2].map(() => lock.read.run(work, { wait })),
    lock.write.run(
      async (lease) => {
        // It is asked for until there is an answer or the lease ends.
        await Promise.race([quietly(lock.downgrade(lease)), work()])
      },
      { wait },
    ),
    ...[1, 2].map((permits) => holdfast.semaphore('s', 2).run(work, { wait, permits })),
    holdfast.all(['y', 'z']).run(work, { wait }),
  ]
  await env.until(Promise.all(tasks.map(quietly)), 60_000)
  await env.until(quietly(holdfast.close({ drain: 100, timeout: 500 })), 60_000)
  const claims = tasks.length + 1
  return {
    asked: useless.requests,
    // A grant is of use, and costs what it costs: it is asked about, given up and cleaned up.
    allowed: claims * SECONDS * PER_TASK_AND_SECOND + 8 * useless.grants,
    plan,
  }
}

describe('a store that answers by the letter and is of no use', () => {
  it('is never asked without a pause, whatever it says', { timeout: 120_000 }, async () => {
    const broken: unknown[] = []
    const warned = process.listeners('warning')
    process.removeAllListeners('warning')
    process.on('warning', () => undefined)
    try {
      for (let seed = 1; seed <= 600; seed++) {
        const { asked, allowed, plan } = await visit(seed)
        if (asked > allowed) broken.push({ seed, asked, allowed, plan })
      }
    } finally {
      process.removeAllListeners('warning')
      for (const listener of warned) process.on('warning', listener)
    }
    expect(broken).toEqual([])
  })

  it('and tells a waiter that it holds, without tokens, is told as broken', async () => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    let asked = 0
    const renew = (requests: readonly unknown[]): unknown => {
      asked++
      return requests.map(() => ({ kind: 'renewed', contended: false }))
    }
    const store = Object.assign(Object.create(server) as Store, { renew })
    const [one, other] = [new Holdfast(server, { env }), new Holdfast(store, { env })]
    const lease = await env.until(one.mutex('x').acquire())
    const waiting = other.mutex('x').acquire({ wait: 10_000 })
    await expect(env.until(waiting)).rejects.toBeInstanceOf(BrokenStoreError)
    expect(asked).toBeLessThan(30)
    expect(lease.held).toBe(true)
  })

  it('and queues a claim that was not to wait, is told as broken, and keeps nobody waiting', async () => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const claim: Store['claim'] = (request, timeout) =>
      server.claim({ ...request, whenBusy: 'queue' }, timeout)
    let renewed = 0
    const renew: Store['renew'] = (...args) => (renewed++, server.renew(...args))
    const [one, other] = [server, Object.assign(Object.create(server) as Store, { claim, renew })].map(
      (store) => new Holdfast(store, { env }),
    ) as [Holdfast, Holdfast]
    const lease = await env.until(one.mutex('x').acquire())
    await expect(env.until(other.mutex('x').tryAcquire())).rejects.toBeInstanceOf(BrokenStoreError)
    await expect(env.until(other.mutex('x').acquire({ wait: 0 }))).rejects.toBeInstanceOf(BrokenStoreError)
    expect(env.mono()).toBe(0)
    expect(await one.inspect('x')).toMatchObject({ holders: [{}], waiters: [] })
    // Nor is it asked about any more.
    await env.advance(20_000)
    expect(renewed).toBe(0)
    // Who would have waited does.
    const began = env.mono()
    const waiting = other.mutex('x').acquire()
    await env.advance(10)
    await env.until(lease.release())
    expect((await env.until(waiting)).held).toBe(true)
    expect(env.mono() - began).toBeLessThan(2000)
  })

  it('and has no more tokens for a holder, has that one claim anew', async () => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    let asked = 0
    const renew = async (requests: Parameters<Store['renew']>[0]): Promise<readonly unknown[]> => {
      asked++
      await server.renew(
        requests.map((request) => ({ ...request, tokens: 0 })),
        100,
      )
      return requests.map(() => ({ kind: 'renewed', contended: false }))
    }
    const store = Object.assign(Object.create(server) as Store, { renew })
    const holdfast = new Holdfast(store, { env })
    const mutex = holdfast.mutex('x')
    const tokens: bigint[] = []
    const section = (): Promise<void> => mutex.run(({ token }) => void tokens.push(token))
    await env.until(Promise.all(Array.from({ length: 20 }, section)))
    expect(new Set(tokens).size).toBe(20)
    const { read } = holdfast.readWriteLock('c')
    const readers = await env.until(Promise.all(Array.from({ length: 100 }, () => read.acquire())))
    expect(new Set(readers.map(({ token }) => token)).size).toBe(100)
    expect(asked).toBeLessThan(150)
  })
})
