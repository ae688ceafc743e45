import { describe, expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { isClean, world } from './far-store.ts'
import type { FarStore, World } from './far-store.ts'

/** What happens to a waiter while the store has not said whether it will tell this process anything. */

const NAMES = 3000

/** Somebody else holds the locks; the waiters' process has asked for nothing yet. */
async function held(w: World, names: readonly string[]): Promise<{ readonly free: () => Promise<unknown> }> {
  const { holdfast } = w.process({ ttl: 60_000 })
  const leases = await w.env.until(Promise.all(names.map((name) => holdfast.mutex(name).acquire())))
  return { free: () => Promise.all(leases.map((lease) => lease.release())) }
}

const swallowed = (store: FarStore): void => store.lose('watch', 'request', Infinity)

const refused = (store: FarStore): { asked: number } => {
  const told = { asked: 0 }
  const watch: Store['watch'] = () => {
    told.asked++
    return { kind: 'unknown', cause: new Error('no connection is left'), retryable: false }
  }
  Object.assign(store, { watch })
  return told
}

describe('a waiter whose process is not told anything yet', () => {
  it('hears of a free lock soon where connections for that are swallowed, in every round', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    swallowed(store)
    for (let round = 0; round < 4; round++) {
      const others = await held(w, ['x'])
      const waits = holdfast.mutex('x').acquire({ wait: 4000 })
      await w.env.advance(1000)
      const freeAt = w.env.mono()
      await w.env.until(others.free())
      const lease = await w.env.until(waits)
      expect(w.env.mono() - freeAt).toBeLessThanOrEqual(1001)
      await w.env.until(lease.release())
    }
    expect(await isClean(w, 'x')).toBe(true)
  })

  it.each([0, 1, 40, 240])(
    'is asked about no more than twice where the store takes %i ms each way',
    async (ms) => {
      const w = world()
      const others = await held(w, ['x'])
      const { holdfast, store } = w.process()
      store.there = ms
      store.back = ms
      const waits = holdfast.mutex('x').acquire()
      await w.env.advance(5 * ms + 1)
      const [waiter] = ((await w.server.inspect('x', 0)) as { waiters: readonly unknown[] }).waiters
      expect([waiter, store.count('claim'), store.count('watch')]).toEqual([expect.anything(), 2, 1])
      await w.env.until(others.free())
      await w.env.until((await w.env.until(waits)).release())
    },
  )

  it('is asked about no more than twice where the store lets it listen at once', async () => {
    const w = world()
    await held(w, ['x'])
    const { holdfast, store } = w.process()
    store.there = 5
    Object.assign(store, { watch: w.server.watch.bind(w.server) })
    const waits = holdfast.mutex('x').acquire({ wait: 1000 })
    await w.env.advance(900)
    expect(store.count('claim')).toBe(2)
    await w.env.until(waits.catch(() => {}))
  })

  it('is asked about no more than twice also as one of thousands', async () => {
    const w = world()
    const names = Array.from({ length: NAMES }, (_, index) => `x${index}`)
    const others = await held(w, names)
    const { holdfast, store } = w.process()
    store.there = 100
    store.back = 100
    const waits = names.map((name) => holdfast.mutex(name).acquire())
    await w.env.advance(2000)
    expect([store.count('claim'), store.count('watch')]).toEqual([2 * NAMES, 1])
    await w.env.until(others.free())
    await w.env.until(Promise.all(waits))
  })

  it('does not ask in the same moment as thousands of others', async () => {
    const w = world()
    const names = Array.from({ length: NAMES }, (_, index) => `x${index}`)
    await held(w, names)
    const { holdfast, store } = w.process()
    swallowed(store)
    const waits = names.map((name) =>
      holdfast
        .mutex(name)
        .acquire({ wait: 1000 })
        .catch(() => {}),
    )
    await w.env.advance(1)
    expect(store.count('claim')).toBe(NAMES)
    await w.env.advance(499)
    expect(store.count('claim')).toBe(NAMES)
    await w.env.advance(10)
    expect(store.count('claim')).toBeLessThan(1.2 * NAMES)
    await w.env.until(Promise.all(waits))
  })

  it('stands in line as soon as the store lets its process listen', async () => {
    const w = world()
    const others = await held(w, ['x'])
    const { holdfast, store } = w.process()
    store.lose('watch', 'request', 1)
    const waits = holdfast.mutex('x').acquire()
    // The first question is given up after 5 s, the second comes a second later.
    await w.env.advance(7000)
    const asked = store.count('claim')
    await w.env.advance(4000)
    expect([store.count('claim'), store.count('watch')]).toEqual([asked, 2])
    const freeAt = w.env.mono()
    await w.env.until(others.free())
    await w.env.until(waits)
    expect(w.env.mono() - freeAt).toBeLessThan(5)
  })

  it('that comes after the store has once failed to let it listen asks at once', async () => {
    const w = world()
    await held(w, ['x', 'y'])
    const { holdfast, store } = w.process()
    swallowed(store)
    const wait = (name: string): Promise<unknown> =>
      holdfast
        .mutex(name)
        .acquire({ wait: 8000 })
        .catch(() => {})
    const first = wait('x')
    while (store.count('watch') < 2) await w.env.advance(10)
    const before = store.count('claim')
    const second = wait('y')
    await w.env.advance(100)
    expect(store.count('claim') - before).toBeGreaterThan(4)
    await w.env.until(Promise.all([first, second]))
  })

  it('has no line to wait for at a store without one, and is not asked about when that lets it listen', async () => {
    const w = world({ queue: false, wakeups: 'push' })
    await held(w, ['x'])
    const { holdfast, store } = w.process()
    let answer = (): void => {}
    const watch: Store['watch'] = () =>
      new Promise((resolve) => {
        answer = () => resolve({ kind: 'watching', stop: () => undefined })
      })
    Object.assign(store, { watch })
    const waits = holdfast.mutex('x').acquire({ wait: 4000 })
    waits.catch(() => {})
    await w.env.advance(100)
    expect(store.count('claim')).toBeGreaterThan(4)
    await w.env.advance(2000)
    const before = store.count('claim')
    answer()
    await w.env.settle()
    expect(store.count('claim')).toBe(before)
    await w.env.until(waits.catch(() => {}))
  })

  it('gets its lock also where the store never lets it listen, and is asked for that once a second', async () => {
    const w = world()
    const others = await held(w, ['x', 'y'])
    const { holdfast, store } = w.process()
    const told = refused(store)
    const waits = Promise.all(['x', 'y'].map((name) => holdfast.mutex(name).acquire()))
    await w.env.advance(10_000)
    expect(told.asked).toBeGreaterThan(4)
    expect(told.asked).toBeLessThanOrEqual(11)
    await w.env.until(others.free())
    await w.env.until(waits)
  })

  it('hears that the Holdfast is closed, and leaves nothing', async () => {
    const w = world()
    const others = await held(w, ['x'])
    const { holdfast, store } = w.process()
    swallowed(store)
    const waits = holdfast.mutex('x').acquire()
    waits.catch(() => {})
    await w.env.advance(600)
    const asked = store.count('claim')
    await w.env.until(holdfast.close())
    await expect(waits).rejects.toMatchObject({ code: 'CLOSED' })
    await w.env.advance(10_000)
    expect([store.count('claim'), store.count('watch')]).toEqual([asked, 1])
    await w.env.until(others.free())
    expect(await isClean(w, 'x')).toBe(true)
  })
})

describe('readers of a process that is told nothing', () => {
  it.each(['refused', 'still asked for'])(
    'ask before they share a claim, also when the store has spoken of a gap (%s)',
    async (listening) => {
      const w = world()
      const { holdfast, store } = w.process({ ttl: 60_000 })
      const watch: Store['watch'] = (_, listener) => {
        listener({ kind: 'gap' })
        if (listening === 'refused') return { kind: 'unknown', cause: new Error('no connection is left') }
        return new Promise(() => undefined)
      }
      Object.assign(store, { watch })
      const { read } = holdfast.readWriteLock('x')
      const first = await w.env.until(read.acquire())
      const second = await w.env.until(read.acquire())
      const writer = w.process().holdfast.readWriteLock('x').write.acquire()
      await w.env.advance(100)
      expect(await w.env.until(read.tryAcquire())).toBeNull()
      await w.env.until(Promise.all([first.release(), second.release()]))
      await w.env.until((await w.env.until(writer)).release())
    },
  )
})

describe('a try', () => {
  it('that is under way when the store lets its process listen is asked once', async () => {
    const w = world()
    await held(w, ['x', 'y'])
    const { holdfast, store } = w.process()
    store.there = 50
    store.back = 50
    const waits = holdfast.mutex('x').acquire({ wait: 3000 })
    waits.catch(() => {})
    await w.env.advance(150)
    const tried = holdfast.mutex('y').tryAcquire()
    expect(await w.env.until(tried)).toBeNull()
    await w.env.advance(300)
    expect(store.count('claim')).toBe(3)
    await w.env.until(waits.catch(() => {}))
  })
})
