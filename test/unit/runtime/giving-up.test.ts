import { describe, expect, it } from 'vitest'

import { ClosedError, LockAbortedError, LockTimeoutError, StoreUnavailableError } from '../../../src/index.ts'
import { isClean, world } from './far-store.ts'

const settled = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    return await promise
  } catch (error) {
    return error
  }
}

describe('a try that is aborted', () => {
  it('leaves the lock to whoever stands behind it in the same process', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    store.there = store.back = 5
    const controller = new AbortController()
    const tried = settled(holdfast.mutex('x').tryAcquire({ signal: controller.signal }))
    const waits = holdfast.mutex('x').acquire({ wait: 1000 })
    await env.advance(2)
    controller.abort()
    expect(await env.until(tried)).toBeInstanceOf(LockAbortedError)
    const lease = await env.until(waits)
    expect(lease.held).toBe(true)
    expect(env.mono()).toBeLessThan(50)
  })

  it('leaves it also when it was an acquire that does not wait', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    store.there = store.back = 5
    const controller = new AbortController()
    const tried = settled(holdfast.mutex('x').acquire({ wait: 0, signal: controller.signal }))
    const waits = holdfast.mutex('x').acquire({ wait: 1000 })
    await env.advance(7)
    controller.abort()
    expect(await env.until(tried)).toBeInstanceOf(LockAbortedError)
    expect((await env.until(waits)).held).toBe(true)
    expect(env.mono()).toBeLessThan(50)
  })

  it('leaves its permits to those behind it', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    store.there = store.back = 5
    const controller = new AbortController()
    const all = holdfast.semaphore('s', 2)
    const tried = settled(all.tryAcquire({ permits: 2, signal: controller.signal }))
    const waits = [all.acquire({ permits: 2, wait: 1000 }), all.acquire({ wait: 1000 })]
    await env.advance(2)
    controller.abort()
    await env.until(tried)
    const first = await env.until(Promise.race(waits))
    expect(env.mono()).toBeLessThan(50)
    await env.until(first.release())
    await env.until(Promise.all(waits))
    expect(env.mono()).toBeLessThan(100)
  })
})

describe('a wait that is over', () => {
  it('speaks of the store only when the store was asked and did not answer', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const held = await env.until(holdfast.mutex('x').acquire())
    // The try and the wait both find the lock taken; nothing is under way for them.
    const waits = settled(holdfast.mutex('x').acquire({ wait: 100 }))
    expect(await env.until(waits)).toBeInstanceOf(LockTimeoutError)
    await env.until(held.release())
    store.lose('claim', 'request', Infinity)
    const asked = settled(holdfast.mutex('x').acquire({ wait: 100 }))
    expect(await env.until(asked)).toBeInstanceOf(StoreUnavailableError)
  })
})

describe('closing a Holdfast', () => {
  it('reaches every lane of a name, also those behind one that is forgotten on the way', async () => {
    const w = world()
    const { env, process } = w
    const { holdfast, store } = process()
    store.there = store.back = 1
    const all = holdfast.semaphore('s', 6)
    const one = await env.until(all.acquire({ permits: 1 }))
    const two = await env.until(all.acquire({ permits: 2 }))
    const three = await env.until(all.acquire({ permits: 3 }))
    const behind = settled(all.acquire({ permits: 1, wait: Infinity }))
    await env.until(two.release())
    await env.until(Promise.resolve(behind))
    const rest = settled(all.acquire({ permits: 3, wait: Infinity }))
    await env.advance(10)
    const closing = holdfast.close({ drain: 0 })
    expect(await env.until(rest)).toBeInstanceOf(ClosedError)
    expect([one.held, three.held]).toEqual([false, false])
    expect([one.signal.aborted, three.signal.aborted]).toEqual([true, true])
    await env.until(closing)
    expect(await isClean(w, 's')).toBe(true)
  })

  it.each([1, 2, 3, 4, 5, 6])('reaches all of six lanes when lane %i is idle', async (idle) => {
    const w = world()
    const { env, process } = w
    const { holdfast } = process()
    const all = holdfast.semaphore('s', 100)
    const leases = await Promise.all([1, 2, 3, 4, 5, 6].map((permits) => env.until(all.acquire({ permits }))))
    await env.until(Promise.resolve(leases[idle - 1]?.release()))
    await env.until(holdfast.close({ drain: 0 }))
    expect(leases.map(({ held }) => held)).toEqual(leases.map(() => false))
    expect(await isClean(w, 's')).toBe(true)
  })
})

describe('a claim whose answer came too late for whoever asked', () => {
  it('is taken out of the line also when its ttl is over: the store keeps a waiter for its patience', async () => {
    const w = world()
    const other = await w.env.until(w.process().holdfast.mutex('x').acquire())
    const { holdfast, store } = w.process({ ttl: 500, requestTimeout: 200 })
    // So that it may queue.
    await w.env.until(settled(holdfast.mutex('x').acquire({ wait: 10 })))
    store.lose('any', 'reply', 1)
    const late = settled(holdfast.mutex('x').acquire({ wait: 10 }))
    await w.env.settle()
    store.lose('any', 'request', Infinity)
    expect(await w.env.until(late)).toBeInstanceOf(StoreUnavailableError)
    await w.env.advance(1500)
    store.losses.length = 0
    await w.env.advance(2000)
    expect((await w.env.until(w.process().holdfast.inspect('x'))).waiters).toEqual([])
    await w.env.until(other.release())
  })
})
