import { describe, expect, it } from 'vitest'

import { ClosedError, Holdfast, InvalidArgumentError, LockLostError } from '../../../src/index.ts'
import type { CloseResult, Lease } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { isClean, world } from './far-store.ts'

const NOTHING_LEFT: CloseResult = { cutShort: [], leftToExpire: [] }

const settled = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    return await promise
  } catch (error) {
    return error
  }
}

describe('closing while a section runs', () => {
  it('never makes two sections overlap: the lock is given back when the first one is done', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const log: string[] = []
    const first = a.holdfast.mutex('job').run(async () => {
      log.push('a begins')
      await w.env.sleep(700)
      log.push('a ends')
    })
    await w.env.advance(100)
    const second = b.holdfast.mutex('job').run(() => log.push('b begins'))
    await w.env.advance(100)
    expect(await w.env.until(a.holdfast.close())).toEqual(NOTHING_LEFT)
    expect(w.env.mono()).toBe(700)
    await w.env.until(Promise.all([first, second]))
    expect(log).toEqual(['a begins', 'a ends', 'b begins'])
    expect(w.env.mono()).toBeLessThan(710)
  })

  it('asks the owner to come to an end at once, and the lease stays good meanwhile', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('job').acquire())
    const { signal } = lease
    const closing = holdfast.close({ drain: 5000 })
    expect(signal.aborted).toBe(true)
    expect(signal.reason).toBeInstanceOf(ClosedError)
    expect((signal.reason as Error).message).toContain('closing')
    // Renewed all the time.
    await env.advance(4000)
    expect(lease.held).toBe(true)
    lease.assertHeld({ atLeast: 500 })
    expect(await env.until(lease.release())).toBe('released')
    expect(await env.until(closing)).toEqual(NOTHING_LEFT)
    expect(env.mono()).toBeLessThan(4010)
  })

  it('asks nobody to come to an end who has, while the lock was about to be handed on', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const lease = await env.until(holdfast.mutex('job').acquire())
    store.back = 50
    const next = settled(holdfast.mutex('job').acquire())
    expect(await env.until(lease.release())).toBe('released')
    const closing = holdfast.close()
    expect(await env.until(next)).toBeInstanceOf(ClosedError)
    expect(lease.signal.aborted).toBe(false)
    expect(await env.until(closing)).toEqual(NOTHING_LEFT)
  })

  it('tells those that ask for the signal only later', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const lease = await env.until(holdfast.mutex('job').acquire())
    const closing = holdfast.close()
    expect(lease.signal.reason).toBeInstanceOf(ClosedError)
    await env.until(lease.release())
    await env.until(closing)
  })

  it('takes the lock away when the drain is over, and says so', async () => {
    const w = world()
    const { holdfast } = w.process()
    const result = settled(
      holdfast.mutex('job').run(async () => {
        await w.env.sleep(60_000)
        return 'done'
      }),
    )
    await w.env.advance(10)
    const closed = await w.env.until(holdfast.close())
    expect(w.env.mono()).toBe(10_010)
    expect(closed).toEqual({ cutShort: ['job'], leftToExpire: [] })
    expect(await isClean(w, 'job')).toBe(true)
    expect(await w.env.until(result)).toBeInstanceOf(LockLostError)
  })

  it('rejects those that wait, those that are asking, and those that come', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const waits = settled(holdfast.mutex('x').acquire())
    store.there = store.back = 20
    const asks = [settled(holdfast.mutex('y').acquire()), settled(holdfast.mutex('z').tryAcquire())]
    await w.env.advance(10)
    const closing = holdfast.close()
    const comes = [settled(holdfast.mutex('w').acquire()), settled(holdfast.mutex('w').tryAcquire())]
    const outcomes = await w.env.until(Promise.all([waits, ...asks, ...comes]))
    expect(outcomes.filter((outcome) => !(outcome instanceof ClosedError))).toEqual([])
    expect(w.env.mono()).toBeLessThan(15)
    expect(lease.held).toBe(true)
    await w.env.until(lease.release())
    await w.env.until(closing)
    for (const name of ['x', 'y', 'z', 'w']) expect(await isClean(w, name)).toBe(true)
  })

  it('waits for readers and permits, and lets nobody new in', async () => {
    const w = world()
    const { holdfast } = w.process()
    const { read } = holdfast.readWriteLock('c')
    const permits = holdfast.semaphore('s', 3)
    const leases = await w.env.until(
      Promise.all([read.acquire(), read.acquire(), permits.acquire(), permits.acquire({ permits: 2 })]),
    )
    const closing = holdfast.close()
    expect(await settled(read.tryAcquire())).toBeInstanceOf(ClosedError)
    for (const lease of leases) {
      await w.env.advance(100)
      expect(leases.map(({ signal }) => signal.aborted)).toEqual([true, true, true, true])
      expect(lease.held).toBe(true)
      await w.env.until(lease.release())
    }
    await w.env.until(closing)
    expect(w.env.mono()).toBeLessThan(450)
    expect(await isClean(w, 'c')).toBe(true)
    expect(await isClean(w, 's')).toBe(true)
  })

  it('asks nested leases too, those taken meanwhile included, and waits for the last of them', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lock = holdfast.mutex('x', { reentrant: true })
    const nested: Lease[] = []
    const run = lock.run(async () => {
      nested.push(await lock.acquire())
      await w.env.sleep(100)
      nested.push(await lock.acquire())
    })
    await w.env.advance(10)
    const closing = holdfast.close()
    await w.env.until(run)
    expect(nested.map(({ signal }) => signal.reason instanceof ClosedError)).toEqual([true, true])
    expect(nested.map(({ held }) => held)).toEqual([true, true])
    expect(await isClean(w, 'x')).toBe(false)
    await w.env.advance(100)
    for (const lease of nested) await w.env.until(lease.release())
    expect(await w.env.until(closing)).toEqual(NOTHING_LEFT)
    expect(w.env.mono()).toBe(200)
  })

  it('costs as much as there are locks, and not their square', async () => {
    const env = new VirtualEnv()
    const store = memoryStore({ now: () => env.instant() })
    const [one, other] = [new Holdfast(store, { env }), new Holdfast(store, { env })]
    const names = Array.from({ length: 1500 }, (_, index) => `n${index}`)
    const held = await Promise.all(names.map((name) => one.mutex(name).acquire()))
    const taken = await Promise.all(names.map((name) => other.mutex(`o${name}`).acquire()))
    const waits = Promise.allSettled(names.map((name) => one.mutex(`o${name}`).acquire()))
    await env.advance(100)
    const before = process.cpuUsage()
    const closing = one.close()
    for (const lease of held) {
      await lease.release()
      await env.settle()
    }
    expect(await env.until(closing)).toEqual(NOTHING_LEFT)
    await waits
    // A second, and ten when each end led to a look at everything. Of work: the machine may be busy.
    expect(process.cpuUsage(before).user).toBeLessThan(4_000_000)
    expect(taken.every((lease) => lease.held)).toBe(true)
  })

  it('takes away at once with a drain of 0', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const { signal } = lease
    expect(await w.env.until(holdfast.close({ drain: 0 }))).toEqual({ cutShort: ['x'], leftToExpire: [] })
    expect(w.env.mono()).toBe(0)
    expect(signal.reason).toBeInstanceOf(LockLostError)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('begins no section of which the lock was taken away before', async () => {
    const holdfast = new Holdfast(memoryStore())
    let begun = 0
    // It has the lock at once. Its function begins when the promise of that has told it.
    const refused = settled(holdfast.mutex('job').run(() => void begun++))
    expect(await holdfast.close({ drain: 0 })).toEqual({ cutShort: ['job'], leftToExpire: [] })
    const error = (await refused) as LockLostError
    expect(error).toBeInstanceOf(LockLostError)
    expect(error.cause).toBeInstanceOf(LockLostError)
    expect(error.outcome).toBeUndefined()
    expect(begun).toBe(0)
  })

  it('cuts nobody short where nobody had it: it was on its way from one task to the next', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const next = settled(holdfast.mutex('x').acquire())
    await w.env.settle()
    store.there = store.back = 5
    // The next one needs a token of its own, for which the store is asked.
    await w.env.until(lease.release())
    expect(await w.env.until(holdfast.close({ drain: 0 }))).toEqual(NOTHING_LEFT)
    expect(await next).toBeInstanceOf(ClosedError)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('lets go at once when a second call says so: what is held runs out', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('job').acquire())
    const first = holdfast.close({ drain: 60_000 })
    await env.advance(100)
    const result = await env.until(holdfast.close({ release: false }))
    expect(env.mono()).toBeLessThan(200)
    expect(result.cutShort).toEqual([])
    expect(result.leftToExpire.map(({ name }) => name)).toEqual(['job'])
    expect(await first).toBe(result)
    expect(lease.held).toBe(true)
    await env.advance(1000)
    expect(lease.held).toBe(false)
  })

  it('may be hastened by a second call, and both answer the same', async () => {
    const w = world()
    const { holdfast } = w.process()
    await w.env.until(holdfast.mutex('x').acquire())
    const first = holdfast.close({ drain: 20_000 })
    await w.env.advance(1000)
    const second = holdfast.close()
    await w.env.advance(1000)
    const third = holdfast.close({ drain: 0 })
    const results = await w.env.until(Promise.all([first, second, third]))
    expect(w.env.mono()).toBe(2000)
    expect(results).toEqual(Array(3).fill({ cutShort: ['x'], leftToExpire: [] }))
  })

  it('inside a section ends with it, when the section does not wait for it', async () => {
    const w = world()
    const { holdfast } = w.process()
    const closings: Promise<CloseResult>[] = []
    await w.env.until(
      holdfast.mutex('x').run(async ({ signal }) => {
        closings.push(holdfast.close())
        expect(signal.aborted).toBe(true)
        await w.env.sleep(50)
      }),
    )
    expect(await w.env.until(Promise.all(closings))).toEqual([NOTHING_LEFT])
    expect(w.env.mono()).toBeLessThan(60)
  })

  it('inside a section that waits for it is over with the drain', async () => {
    const w = world()
    const { holdfast } = w.process()
    const run = settled(holdfast.mutex('x').run(() => holdfast.close({ drain: 300 })))
    expect(await w.env.until(run)).toBeInstanceOf(LockLostError)
    expect(w.env.mono()).toBe(300)
  })

  it('lets a lease end that is lost meanwhile, and does not wait for its owner', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 1000 })
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    store.lose('any', 'request', Infinity)
    const closing = holdfast.close({ drain: 60_000, timeout: 500 })
    await w.env.until(closing)
    expect(lease.held).toBe(false)
    expect(w.env.mono()).toBeLessThan(1000 + 500 + 5)
  })

  it('leaves what is held to run out with release: false, without a drain', async () => {
    const w = world()
    const { holdfast } = w.process({ ttl: 1000 })
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const { signal } = lease
    const result = await w.env.until(holdfast.close({ release: false }))
    expect(w.env.mono()).toBe(0)
    expect(result.leftToExpire.map(({ name }) => name)).toEqual(['x'])
    expect(result.leftToExpire[0]?.within).toBe(1000)
    expect(lease.held).toBe(true)
    expect(signal.reason).toBeInstanceOf(ClosedError)
    expect(String(signal.reason)).toContain('is not renewed any more and ends in 988 ms')
    await w.env.advance(1000)
    expect(lease.held).toBe(false)
    expect(() => lease.assertHeld()).toThrow(LockLostError)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('says how long it is good then', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('x').acquire())
    const { signal } = lease
    await env.advance(200)
    const left = Math.floor(lease.remaining())
    expect(left).toBeGreaterThan(0)
    await env.until(holdfast.close({ release: false }))
    expect((signal.reason as Error).message).toContain(`ends in ${left} ms`)
  })

  it('asks about nothing any more with release: false, also when messages may have been missed', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 1000 })
    const writing = await w.env.until(holdfast.mutex('y').acquire())
    const reading = await w.env.until(holdfast.readWriteLock('x').read.acquire())
    await w.env.until(holdfast.readWriteLock('x').read.acquire())
    // Its answer is what closing waits for.
    store.there = store.back = 100
    const released = writing.release()
    const closed = holdfast.close({ release: false })
    await w.env.advance(50)
    const { signal } = reading
    const asked = store.count('renew')
    store.gap()
    await w.env.until(Promise.all([released, closed]))
    expect(store.count('renew')).toBe(asked)
    await w.env.advance(1000)
    expect([reading.held, signal.aborted]).toEqual([false, true])
  })

  it('asks about nothing any more with release: false, also when a downgrade is answered', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 1000 })
    const lock = holdfast.readWriteLock('x')
    const lease = await w.env.until(lock.write.acquire())
    const waiting = lock.write.acquire().catch((error: unknown) => error)
    const other = w.process().holdfast.readWriteLock('x').write.acquire()
    await w.env.advance(100)
    store.there = store.back = 50
    const asked = store.count('renew')
    const downgraded = lock.downgrade(lease)
    const closed = holdfast.close({ release: false })
    await w.env.until(Promise.all([downgraded, closed]))
    expect(await waiting).toBeInstanceOf(ClosedError)
    expect(store.count('renew')).toBe(asked)
    expect((await w.env.until(other)).held).toBe(true)
  })

  it('lets an owner that hears of release: false release it before it runs out', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 1000 })
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const kept = await w.env.until(holdfast.mutex('y').acquire())
    let outcome: Promise<string> | undefined
    lease.signal.addEventListener('abort', () => void (outcome = lease.release()))
    const result = await w.env.until(holdfast.close({ release: false }))
    expect(await outcome).toBe('released')
    expect(store.count('release')).toBe(1)
    expect(result.leftToExpire.map(({ name }) => name)).toEqual(['y'])
    expect([kept.held, await isClean(w, 'x')]).toEqual([true, true])
  })

  it('lets a write lock be downgraded while it drains', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lock = holdfast.readWriteLock('c')
    const lease = await w.env.until(lock.write.acquire())
    const closing = holdfast.close()
    await w.env.until(lock.downgrade(lease))
    expect(lease.held).toBe(true)
    await w.env.until(lease.release())
    expect(await w.env.until(closing)).toEqual(NOTHING_LEFT)
  })

  it('comes with `await using`', async () => {
    const w = world()
    const { store } = w.process()
    const log: string[] = []
    const scope = async (): Promise<void> => {
      await using holdfast = new Holdfast(store, { env: w.env, owner: 'test' })
      const job = async (): Promise<void> => {
        await holdfast.mutex('x').run(async () => {
          await w.env.sleep(100)
          log.push('job ends')
        })
      }
      job().catch(() => log.push('job failed'))
      await w.env.sleep(10)
    }
    await w.env.until(scope())
    expect(log).toEqual(['job ends'])
  })

  it('refuses times that are none', async () => {
    const { process } = world()
    const { holdfast } = process()
    for (const options of [{ drain: -1 }, { timeout: 1.5 }, { drain: Infinity }, { timeout: '5s' }]) {
      expect(await settled(holdfast.close(options as object))).toBeInstanceOf(InvalidArgumentError)
    }
    expect(await holdfast.close()).toEqual(NOTHING_LEFT)
  })
})

describe('closing while the store is down', () => {
  it('ends after its timeout, says what is left, and lets the process end', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    await w.env.until(holdfast.mutex('held').acquire())
    const asking = settled(holdfast.mutex('asked').acquire())
    await w.env.settle()
    store.lose('any', 'request', Infinity)
    const waiting = settled(holdfast.mutex('more').acquire())
    const closing = holdfast.close({ drain: 0, timeout: 2000 })
    const { cutShort, leftToExpire } = await w.env.until(closing)
    await w.env.until(Promise.all([asking, waiting]))
    expect(w.env.mono()).toBe(2000)
    expect(cutShort).toContain('held')
    expect(leftToExpire.map(({ name }) => name).sort()).toContain('held')
    expect(leftToExpire.map(({ name }) => name)).toContain('more')
    for (const { within } of leftToExpire) expect(within).toBeLessThanOrEqual(15_000)
    const sent = store.count()
    await w.env.runUntilIdle(5000)
    await w.env.advance(60_000)
    expect(store.count()).toBe(sent)
    expect(w.env.timers).toBe(0)
  })

  it('takes 5 s after the drain if nothing else is said', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 60_000 })
    await w.env.until(holdfast.mutex('held').acquire())
    store.lose('any', 'request', Infinity)
    await w.env.until(holdfast.close())
    expect(w.env.mono()).toBe(15_000)
  })

  it('says how long a waiter may be left: in line for its patience, and then with the lock', async () => {
    const w = world()
    const other = await w.env.until(w.process().holdfast.mutex('x').acquire())
    const { holdfast, store } = w.process({ ttl: 1000, patience: 1000 })
    const waiting = settled(holdfast.mutex('x').acquire())
    await w.env.advance(100)
    store.lose('any', 'request', Infinity)
    const { leftToExpire } = await w.env.until(holdfast.close({ timeout: 0 }))
    const from = w.env.mono()
    await w.env.until(waiting)
    const [{ within } = { within: 0 }] = leftToExpire
    // It had shown that it was there just before: as late as can be it is granted, and holds the lock for as long again.
    expect(within).toBeGreaterThan(1990)
    expect(within).toBeLessThanOrEqual(2000)
    await w.env.advance(within - (w.env.mono() - from))
    await w.env.until(other.release())
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('reports a release that was not answered', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const lease = await w.env.until(holdfast.mutex('held').acquire())
    store.lose('any', 'request', Infinity)
    const closing = holdfast.close()
    const releasing = lease.release()
    const { leftToExpire } = await w.env.until(closing)
    expect(leftToExpire.map(({ name }) => name)).toEqual(['held'])
    expect(await w.env.until(releasing)).toBe('unknown')
  })

  type Begun = (holdfast: Holdfast, lease: Lease, signal: AbortSignal) => Promise<unknown>
  it.each<[string, Begun]>([
    ['a release', (_, lease) => lease.release()],
    ['an aborted wait', (holdfast, __, signal) => holdfast.mutex('x').acquire({ signal })],
    ['an aborted try', (holdfast, __, signal) => holdfast.mutex('x').tryAcquire({ signal })],
    ['a wait that is over', (holdfast) => holdfast.mutex('x').acquire({ wait: 5 })],
    ['an aborted set', (holdfast, __, signal) => holdfast.all(['x', 'y']).acquire({ signal })],
  ])('reports what was under way when it began: %s', async (what, begin) => {
    const w = world()
    const { holdfast, store } = w.process()
    const lease = await w.env.until(holdfast.mutex('held').acquire())
    const leaves = new AbortController()
    if (what !== 'a release') await w.env.until(lease.release())
    store.lose('any', what === 'a release' ? 'request' : 'reply', Infinity)
    const begun = settled(begin(holdfast, lease, leaves.signal))
    await w.env.advance(10)
    leaves.abort()
    const { leftToExpire } = await w.env.until(holdfast.close({ timeout: 1000 }))
    expect(leftToExpire.map(({ name }) => name)).toEqual([what === 'a release' ? 'held' : 'x'])
    expect(await isClean(w, leftToExpire[0]?.name ?? '')).toBe(false)
    await w.env.until(begun)
  })

  it('reports nothing that was under way when it began and has been answered since', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const lease = await w.env.until(holdfast.mutex('held').acquire())
    store.there = store.back = 50
    const leaves = new AbortController()
    const { signal } = leaves
    const begun = [lease.release(), settled(holdfast.mutex('x').acquire({ signal }))]
    await w.env.advance(60)
    leaves.abort()
    expect(await w.env.until(holdfast.close())).toEqual(NOTHING_LEFT)
    await w.env.until(Promise.all(begun))
    for (const name of ['held', 'x']) expect(await isClean(w, name)).toBe(true)
  })
})

describe('closing the store too', () => {
  it('waits for it, but not for ever', async () => {
    const env = new VirtualEnv()
    for (const [takes, until] of [
      [300, 300],
      [60_000, 5000],
    ] as const) {
      const began = env.mono()
      const store = memoryStore({ now: () => env.instant() })
      store.close = () => env.sleep(takes)
      const holdfast = new Holdfast(store, { env, closeStore: true })
      await env.until(holdfast.mutex('x').run(() => 1))
      await env.until(holdfast.close())
      expect(env.mono() - began).toBe(until)
    }
  })

  it('tells when it cannot be closed', async () => {
    const env = new VirtualEnv()
    const store = memoryStore({ now: () => env.instant() })
    store.close = () => Promise.reject(new Error('no'))
    const holdfast = new Holdfast(store, { env, closeStore: true })
    await expect(env.until(holdfast.close())).rejects.toThrow('no')
  })
})
