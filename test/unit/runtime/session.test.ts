import { describe, expect, it } from 'vitest'

import type { StoreEvent, StoreListener, Store, Unknown, Watch } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { CapacityLock } from '../../../src/locks/lock.ts'
import { DEFAULTS } from '../../../src/locks/options.ts'
import { Claim } from '../../../src/runtime/claim.ts'
import { withClaim, without } from '../../../src/runtime/claims.ts'
import type { Lane } from '../../../src/runtime/lane.ts'
import { laneKind } from '../../../src/runtime/lane-kind.ts'
import { outside } from '../../../src/runtime/sections.ts'
import { Session } from '../../../src/runtime/session.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed } from '../testkit/lesser-stores.ts'
import { isClean, world } from './far-store.ts'

type Capabilities = Store['capabilities']

function open(capabilities: Partial<Capabilities> = {}, more: Partial<Store> = {}) {
  const env = new VirtualEnv()
  const memory = memoryStore({ now: () => env.instant() })
  const store = changed(memory, { ...more, capabilities: { ...memory.capabilities, ...capabilities } })
  const session = new Session(store, {
    env,
    clock: {},
    owner: 'me',
    patience: 10_000,
    turn: { count: 16, ms: 4 },
    requestTimeout: 5_000,
  })
  return { env, session, store }
}

describe('what a session can count on', () => {
  it.each([
    [
      { queue: true, wakeups: 'push' },
      { pushes: true, unordered: false },
    ],
    [
      { queue: true, wakeups: 'poll' },
      { pushes: false, unordered: false },
    ],
    [
      { queue: false, wakeups: 'push' },
      { pushes: false, unordered: false },
    ],
    [
      { queue: false, wakeups: 'poll' },
      { pushes: false, unordered: true },
    ],
  ] as const)('of a store with %o is %o', (capabilities, expected) => {
    const { session } = open(capabilities)
    expect({ pushes: session.pushes, unordered: session.unordered }).toEqual(expected)
  })

  it('is to stand in line only where there is one, while it listens, and is not closing', async () => {
    const { session, env } = open()
    expect([session.canQueue, session.watching, session.era]).toEqual([false, false, 0])
    session.listen()
    expect([session.canQueue, session.watching, session.era]).toEqual([true, true, 1])
    const closing = session.close({ drain: 0, timeout: 100, release: true } as never, () => {})
    expect(session.canQueue).toBe(false)
    await env.until(closing)
    expect(session.watching).toBe(false)
    const none = open({ queue: false, wakeups: 'push' })
    none.session.listen()
    expect([none.session.watching, none.session.canQueue]).toEqual([true, false])
  })
})

describe('how long until a claim is asked for again', () => {
  it('is anything up to twice a mean that grows to half a second', () => {
    const { session } = open()
    for (const [attempts, mean] of [
      [0, 5],
      [4, 12.2],
      [10, 46.6],
      [40, 500],
      [400, 500],
    ] as const) {
      const delays = Array.from({ length: 300 }, () => session.pollDelay({ attempts }))
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(1)
      expect(Math.min(...delays)).toBeLessThan(mean / 5 + 2)
      expect(Math.max(...delays)).toBeLessThanOrEqual(2 * mean + 2)
      expect(Math.max(...delays)).toBeGreaterThan(1.7 * mean)
      expect(delays.every(Number.isInteger)).toBe(true)
    }
  })

  it('is a third of what it is kept for, where the store pushes, and no longer than a poll where it does not', () => {
    const claim = (ttl: number): never => ({ ttl, attempts: 100 }) as never
    expect(open().session.heartbeat(claim(3_000))).toBe(1_000)
    expect(open().session.heartbeat(claim(60_000))).toBe(10_000 / 3)
    const polls = open({ wakeups: 'poll' }).session
    const delays = Array.from({ length: 100 }, () => polls.heartbeat(claim(60_000)))
    expect(Math.max(...delays)).toBeLessThanOrEqual(1_001)
    expect(Math.max(...Array.from({ length: 100 }, () => polls.heartbeat(claim(300))))).toBe(100)
  })
})

describe('to begin to listen', () => {
  /** A store whose answer to `watch` the test gives. */
  function slow(capabilities: Partial<Capabilities> = {}) {
    const answers: ((answer: Watch | Unknown) => void)[] = []
    let stopped = 0
    const watch = () => new Promise<Watch | Unknown>((resolve) => answers.push(resolve))
    const watching: Watch = { kind: 'watching', stop: () => void stopped++ }
    return { ...open(capabilities, { watch }), answers, watching, stops: () => stopped }
  }

  it('is asked for once by all who want it', async () => {
    const { session, answers, watching, env } = slow()
    for (let times = 0; times < 3; times++) session.listen()
    expect([answers.length, session.watching]).toEqual([1, false])
    answers[0]?.(watching)
    await env.settle()
    expect([session.watching, session.era]).toEqual([true, 1])
    session.listen()
    expect(answers).toHaveLength(1)
  })

  it('is tried again after a second', async () => {
    const { session, answers, watching, env } = slow()
    session.listen()
    answers[0]?.({ kind: 'unknown', cause: new Error('no') })
    await env.settle()
    await env.advance(999)
    session.listen()
    expect([answers.length, session.watching, session.era]).toEqual([1, false, 0])
    await env.advance(1)
    session.listen()
    session.listen()
    expect(answers).toHaveLength(2)
    answers[1]?.(watching)
    await env.settle()
    expect([session.watching, session.era]).toEqual([true, 1])
  })

  it('is not wanted where the store says nothing, and where it tells of queues or of releases it is', () => {
    const wants = (capabilities: Partial<Capabilities>): number => {
      const { session, answers } = slow(capabilities)
      session.listen()
      return answers.length
    }
    expect(wants({ queue: false, wakeups: 'poll' })).toBe(0)
    expect(wants({ queue: true, wakeups: 'poll' })).toBe(1)
    expect(wants({ queue: false, wakeups: 'push' })).toBe(1)
  })

  it('that is answered after closing has begun is ended at once', async () => {
    const { session, answers, watching, env, stops } = slow()
    session.listen()
    const closing = session.close({ drain: 0, timeout: 1_000, release: true } as never, () => {})
    answers[0]?.(watching)
    await env.until(closing)
    expect([stops(), session.watching]).toEqual([1, false])
    session.listen()
    expect(answers).toHaveLength(1)
  })
})

describe('the lanes of a session', () => {
  const spec = { weight: 1, capacity: 5, ttl: 1_000, renew: true, fair: 'turns' } as const
  const kinds = [1, 2, 3].map((weight) => laneKind({ ...spec, weight }))

  it('are found again by name and kind, and all are walked along', () => {
    const { session } = open()
    const lanes = kinds.map((kind) => session.lane('x', kind, null))
    const other = session.lane('y', kinds[0] as never, null)
    expect(new Set([...lanes, other]).size).toBe(4)
    kinds.forEach((kind, at) => expect(session.lane('x', laneKind(kind), null)).toBe(lanes[at]))
    expect(new Set(session.everyLane())).toEqual(new Set([...lanes, other]))
    expect(session.lane('x', kinds[1] as never, lanes[1] as Lane)).toBe(lanes[1])
  })

  it.each([0, 1, 2])('are forgotten one by one when they rest (%i first), and the others stay', (first) => {
    const { session } = open()
    const lanes = kinds.map((kind) => session.lane('x', kind, null))
    const rested = lanes[first] as Lane
    session.rest(rested)
    // The last one that rests is kept.
    expect(session.everyLane()).toHaveLength(3)
    session.rest(rested)
    expect(session.everyLane()).toHaveLength(3)
    const other = lanes[(first + 1) % 3] as Lane
    session.rest(other)
    expect(session.everyLane()).not.toContain(rested)
    expect(new Set(session.everyLane())).toEqual(new Set(lanes.filter((lane) => lane !== rested)))
    expect([rested.listed, other.listed]).toEqual([false, true])
    // Whoever has it uses it again.
    expect(session.lane('x', kinds[first] as never, rested)).toBe(rested)
    expect(session.everyLane()).toHaveLength(3)
    expect(rested.listed).toBe(true)
  })

  const gone = { signal: AbortSignal.abort() }
  it.each<[string, (lock: CapacityLock) => Promise<unknown>]>([
    ['a section', (lock) => lock.run(() => 1)],
    ['several permits', (lock) => lock.run(() => 1, { permits: 3 })],
    ['another ttl', (lock) => lock.run(() => 1, { ttl: 500 })],
    ['a try in vain', (lock) => lock.run(() => lock.tryAcquire({ permits: 5 }), { permits: 3 })],
    ['an acquire that waits for itself', (lock) => lock.run(() => lock.acquire({ permits: 5 }))],
    ['the same without waiting', (lock) => lock.run(() => lock.acquire({ permits: 5, wait: 0 }))],
    ['a wait that is over', (lock) => lock.run(() => outside(() => lock.acquire({ permits: 5, wait: 9 })))],
    ['an aborted signal', (lock) => lock.acquire({ ...gone, permits: 2 })],
    ['an aborted try', (lock) => lock.tryAcquire({ ...gone, permits: 2 })],
    ['refused options', async (lock) => lock.acquire({ permits: 6 })],
  ])('are forgotten after %s, whatever the name', async (_, use) => {
    const { env, session } = open()
    const kind = { mode: 'permits', capacity: 5, weight: 1, reentrant: false } as const
    for (let count = 0; count < 20; count++) {
      const used = use(new CapacityLock({ session, leaks: null }, `x${count}`, kind, DEFAULTS))
      await env.until(used.catch(() => null))
      await env.settle()
    }
    // The last one that rests is kept.
    expect(session.everyLane().length).toBeLessThanOrEqual(1)
  })

  it('know claims by their ids', () => {
    const { session } = open()
    const lanes = kinds.map((kind) => session.lane('x', kind, null))
    const claims = lanes.map((lane) => lane.newClaim())
    for (const { id } of claims) {
      expect([session.knows('x', id), session.owns(id)]).toEqual([true, true])
      expect(session.knows('y', id)).toBe(false)
    }
    expect(new Set(claims.map(({ id }) => id)).size).toBe(3)
    const stranger = `${session.id}.99`
    expect([session.knows('x', stranger), session.owns(stranger)]).toEqual([false, true])
    expect(session.owns('other.1')).toBe(false)
    const leaving = Array.from(
      { length: 40 },
      (_, at) => new Claim(lanes[0] as Lane, `${session.id}.${99 + at}`, null),
    )
    for (const claim of leaving) session.leaving = withClaim(session.leaving, claim)
    for (const claim of leaving) {
      expect(session.knows('y', claim.id)).toBe(true)
      session.leaving = without(session.leaving, claim)
      expect(session.knows('y', claim.id)).toBe(false)
    }
  })
})

describe('names that are not used any more', () => {
  it('are not kept, whatever became of their locks', async () => {
    const all = world()
    const { holdfast } = all.process({ ttl: 1_000 })
    const { session } = holdfast as unknown as { session: Session }
    for (let at = 0; at < 20; at++) {
      const lock = holdfast.semaphore(`n ${at}`, 3)
      const one = await all.env.until(lock.acquire())
      const two = await all.env.until(lock.acquire({ permits: 2 }))
      expect(await all.env.until(lock.tryAcquire())).toBeNull()
      const late = lock.acquire({ wait: 5 })
      await expect(all.env.until(late)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
      await all.env.until(one.release())
      await all.env.until(two.release())
      await all.env.advance(100)
    }
    expect(session.everyLane().length).toBeLessThanOrEqual(1)
    expect(await isClean(all, 'n 3')).toBe(true)
    await all.env.until(holdfast.close())
    await all.env.advance(500)
    expect(all.env.timers).toBe(0)
  })
})

describe('a store that tells nonsense', () => {
  it('is told once to be broken, and what it tells next is heard', async () => {
    const env = new VirtualEnv()
    const listeners: StoreListener[] = []
    const memory = memoryStore({ now: () => env.instant() })
    const store = changed(memory, {
      watch: (session, listener, timeout) => {
        listeners.push(listener)
        return memory.watch(session, listener, timeout)
      },
    })
    const warnings: string[] = []
    const warned = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', warned)
    const [a, b] = [new Holdfast(store, { env }), new Holdfast(store, { env })]
    const lease = await env.until(a.mutex('x').acquire())
    const waiting = b.mutex('x').acquire()
    await env.advance(10)
    for (const listener of listeners)
      for (const event of [undefined, { kind: 'granted' }]) listener(event as unknown as StoreEvent)
    await env.until(lease.release())
    await env.until((await env.until(waiting)).release())
    await env.settle()
    process.off('warning', warned)
    expect(warnings.filter((message) => message.includes('watch() told'))).toHaveLength(listeners.length)
    await env.until(a.close())
    await env.until(b.close())
  })
})
