import { describe, expect, it } from 'vitest'

import type { ReleaseResult, Store } from '../../../src/core/contract.ts'
import { Holdfast, InvalidArgumentError, LockLostError, StoreUnavailableError } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { isClean, world } from './far-store.ts'

/** ttl minus one per cent and two milliseconds: what a client may believe of a ttl of 1,000. */
const BELIEVED = 988

describe('a lease tells the truth about how long it is good', () => {
  it('counts from before the request left, not from when the answer came', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    store.there = 100
    store.back = 200
    const lease = await env.until(holdfast.mutex('a').acquire())
    expect(lease.remaining()).toBeCloseTo(BELIEVED - 300)
  })

  it('counts a renewal from before it left, too', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    const taken = env.mono()
    store.there = 40
    store.back = 80
    await env.advance(400)
    const renewed = store.sent.findLast(({ method }) => method === 'renew')
    expect(renewed).toBeDefined()
    // Renewed at a third of the ttl, answered 120 ms later.
    const due = taken + 1000 / 3
    await env.advance(due + 121 - env.mono())
    expect(lease.remaining()).toBeGreaterThan(BELIEVED - 150)
    expect(lease.remaining()).toBeLessThanOrEqual(BELIEVED - 120)
  })

  it('is never given out when the answer took longer than it lasts, and nothing is left behind', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 300, wait: 2000 })
    store.there = 10
    store.back = 130
    const slow = holdfast.mutex('a').acquire()
    await w.env.advance(5)
    w.env.stall(400)
    const lease = await w.env.until(slow)
    expect(lease.remaining()).toBeGreaterThan(0)
    await w.env.until(lease.release())
    await w.env.runUntilIdle()
    expect(await isClean(w, 'a')).toBe(true)
  })

  it('ends by the local clock when no renewal is answered, and its signal says so at that moment', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    const { signal } = lease
    store.lose('any', 'request', Infinity)
    await env.advance(BELIEVED - 2)
    expect(signal.aborted).toBe(false)
    expect(lease.held).toBe(true)
    await env.advance(3)
    expect(signal.aborted).toBe(true)
    expect(signal.reason).toBeInstanceOf(LockLostError)
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
    expect(() => lease.assertHeld()).toThrow(LockLostError)
    await expect(lease.release()).resolves.toBe('expired')
  })

  it.each([
    ['at once', (answer: ReleaseResult) => answer],
    ['later', async (answer: ReleaseResult) => answer],
  ])('has expired if the store, asked to release it, says %s that it is not held', async (_, when) => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const lease = await env.until(holdfast.mutex('a').acquire())
    store.release = () => when({ released: { kind: 'not-held' } }) as never
    await expect(env.until(lease.release())).resolves.toBe('expired')
    const other = await env.until(holdfast.mutex('b').acquire())
    store.release = () => when({ released: { kind: 'released' } }) as never
    await expect(env.until(other.release())).resolves.toBe('released')
  })

  it('is checked by assertHeld before any timer could fire, right after a blocked event loop', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    lease.assertHeld()
    env.stall(BELIEVED + 1)
    expect(() => lease.assertHeld()).toThrow(LockLostError)
    expect(lease.signal.aborted).toBe(true)
  })

  it('is lost when the machine slept: boot time went on although the monotonic clock stood still', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    env.jump({ boot: 3_600_000, wall: 3_600_000 })
    expect(lease.held).toBe(false)
  })

  it('is lost when only boot time shows the sleep, as soon as that clock is read', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 15_000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    env.jump({ boot: 3_600_000 })
    await env.advance(1500)
    expect(lease.held).toBe(false)
  })

  it('does not get longer when the wall clock is put back', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    store.lose('any', 'request', Infinity)
    env.jump({ wall: -3_600_000 })
    expect(lease.held).toBe(true)
    await env.advance(BELIEVED + 1)
    expect(lease.held).toBe(false)
  })

  it('ends when the wall clock is put forward, unless the wall clock is not to be believed', async () => {
    const { env, process } = world()
    const suspicious = await env.until(process({ ttl: 1000 }).holdfast.mutex('a').acquire())
    const trusting = await env.until(
      process({ ttl: 1000, clock: { wall: false } })
        .holdfast.mutex('b')
        .acquire(),
    )
    env.jump({ wall: 3_600_000 })
    expect(suspicious.held).toBe(false)
    expect(trusting.held).toBe(true)
  })

  it('has at least the time that assertHeld asks for, or says that it has not', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    store.lose('any', 'request', Infinity)
    await env.advance(500)
    lease.assertHeld({ atLeast: 400 })
    expect(() => lease.assertHeld({ atLeast: 600 })).toThrow(/less than 600 ms/)
    expect(lease.held).toBe(true)
  })
})

describe('renewal', () => {
  it('happens at a third of the ttl and keeps lease and token', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    const { token } = lease
    await env.advance(10_000)
    expect(lease.held).toBe(true)
    expect(lease.token).toBe(token)
    expect(store.count('renew')).toBeGreaterThanOrEqual(32)
    expect(store.count('renew')).toBeLessThanOrEqual(40)
  })

  it('of all leases goes out together', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    for (let n = 0; n < 100; n++) await env.until(holdfast.mutex(`name ${n}`).acquire())
    await env.advance(310)
    expect(store.sent.filter(({ method }) => method === 'renew')).toEqual([{ method: 'renew', size: 100 }])
  })

  it('that fails once costs nothing: it is tried again', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    store.lose('renew', 'request', 1)
    await env.advance(5000)
    expect(lease.held).toBe(true)
  })

  it('whose answer is unknown does not extend what is believed', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    // The store does renew; we do not know it.
    store.lose('renew', 'reply', Infinity)
    await env.advance(880)
    expect(lease.held).toBe(true)
    await env.advance(20)
    expect(lease.held).toBe(false)
  })

  it('that is confirmed after the end does not bring the lease back', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    store.back = 150
    await env.advance(340)
    env.stall(700)
    expect(lease.held).toBe(false)
    await env.advance(1000)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })

  it('of a lease that the store lost tells so at once and leaves the others alone', async () => {
    const { env, process, server } = world()
    const { holdfast } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    const other = await env.until(holdfast.mutex('b').acquire())
    const info = await server.inspect('a', 1000)
    if ('kind' in info) throw new Error('no answer')
    await server.withdraw({ name: 'a', id: info.holders[0]?.id ?? '' }, 1000)
    await env.advance(310)
    expect(lease.held).toBe(false)
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect(other.held).toBe(true)
  })

  it('stops with the release: nothing is asked for a released lease', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a').acquire())
    await env.until(lease.release())
    const before = store.count()
    await env.advance(10_000)
    expect(store.count()).toBe(before)
  })

  it('that is under way when the lease is released does not make it come back', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 900 })
    const lease = await w.env.until(holdfast.mutex('a').acquire())
    store.there = 50
    await w.env.advance(310)
    expect(store.count('renew')).toBe(1)
    store.there = 10
    await w.env.until(lease.release())
    await w.env.advance(1000)
    expect(await isClean(w, 'a')).toBe(true)
    expect(store.count('renew')).toBe(1)
  })

  it('is left out with renew: false, and the lease ends after its ttl', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900, renew: false })
    const lease = await env.until(holdfast.mutex('a').acquire())
    await env.advance(880)
    expect(lease.held).toBe(true)
    await env.advance(20)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(true)
    expect(store.count('renew')).toBe(0)
  })

  it('is left out with renew: false also when somebody here waits for it, and when messages may have been missed', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 900, renew: false })
    const lease = await env.until(holdfast.mutex('a').acquire())
    await env.advance(500)
    const next = holdfast.mutex('a').acquire()
    await env.advance(100)
    store.gap()
    await env.advance(100)
    expect(lease.remaining()).toBeLessThan(200)
    await env.advance(200)
    expect(lease.signal.aborted).toBe(true)
    await env.until((await env.until(next)).release())
  })

  it('ends with maxHold: the lease is lost and the next one gets the lock', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 900 })
    const lease = await env.until(holdfast.mutex('a', { maxHold: 2000 }).acquire())
    const next = holdfast.mutex('a', { maxHold: 2000 }).acquire()
    await env.advance(1990)
    expect(lease.held).toBe(true)
    await env.advance(20)
    expect(lease.held).toBe(false)
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect((await env.until(next)).held).toBe(true)
  })
})

describe('a lease that ended', () => {
  it('by maxHold says so before any timer could fire', async () => {
    const { env, process } = world()
    const lease = await env.until(process().holdfast.mutex('a').acquire({ maxHold: 500 }))
    env.stall(501)
    expect(lease.held).toBe(false)
  })

  it('by the local clock is taken away from the store too, which may have renewed it unheard', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 3000 })
    await w.env.until(holdfast.mutex('a').acquire())
    store.lose('renew', 'reply', Infinity)
    await w.env.advance(2980)
    expect(await isClean(w, 'a')).toBe(true)
  })

  it('by a release that nobody heard is cleaned up in the background', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 200 })
    const lease = await w.env.until(holdfast.mutex('a').acquire())
    store.lose('release', 'request')
    await expect(w.env.until(lease.release())).resolves.toBe('unknown')
    await w.env.runUntilIdle(1000)
    expect(await isClean(w, 'a')).toBe(true)
  })
})

describe('a store that does not answer', () => {
  it('is an error of its own, not a timeout, when the wait ends', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ wait: 1000 })
    store.lose('any', 'request', Infinity)
    await expect(env.until(holdfast.mutex('a').acquire())).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  it('fails a try at once', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ requestTimeout: 200 })
    store.lose('claim', 'reply')
    await expect(env.until(holdfast.mutex('a').tryAcquire())).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  it('is asked again until it does, with the same claim, so that a lost reply costs no second grant', async () => {
    const w = world()
    const { holdfast, store } = w.process({ ttl: 3000 })
    store.lose('claim', 'reply', 2)
    const lease = await w.env.until(holdfast.mutex('a').acquire())
    expect(lease.held).toBe(true)
    const info = await w.server.inspect('a', 1000)
    expect('kind' in info ? [] : info.holders).toHaveLength(1)
    await w.env.until(lease.release())
    await w.env.runUntilIdle()
    expect(await isClean(w, 'a')).toBe(true)
  })
})

describe('a ttl that leaves nothing to believe in', () => {
  it.each([1, 2])('is refused: %i ms', async (ttl) => {
    const env = new VirtualEnv()
    const holdfast = new Holdfast(memoryStore({ now: () => env.instant() }), { env })
    expect(() => holdfast.mutex('x', { ttl })).toThrow(InvalidArgumentError)
    await expect(holdfast.mutex('x').acquire({ ttl })).rejects.toBeInstanceOf(InvalidArgumentError)
  })

  it('is refused also where a store forgets early', () => {
    const env = new VirtualEnv()
    const store = Object.create(memoryStore({ now: () => env.instant() })) as Store
    Object.assign(store, { capabilities: { ...store.capabilities, earlyExpiry: 1000 } })
    const holdfast = new Holdfast(store, { env })
    expect(() => holdfast.mutex('x', { ttl: 1012 })).toThrow(InvalidArgumentError)
    expect(holdfast.mutex('x', { ttl: 1013 }).name).toBe('x')
  })

  it('does not make a store be asked without a pause that always answers too late', async () => {
    const env = new VirtualEnv()
    const server = memoryStore({ now: () => env.instant() })
    const store = Object.create(server) as Store
    let asked = 0
    store.claim = async (request, timeout) => {
      asked++
      env.stall(18)
      return server.claim(request, timeout)
    }
    const holdfast = new Holdfast(store, { env, ttl: 20 })
    await expect(env.until(holdfast.mutex('x').acquire({ wait: 1000 }))).rejects.toBeInstanceOf(
      StoreUnavailableError,
    )
    expect(asked).toBeLessThan(30)
  })
})
