import { describe, expect, it } from 'vitest'

import { LockTimeoutError, StoreUnavailableError } from '../../../src/index.ts'
import { world } from './far-store.ts'
import type { World } from './far-store.ts'

describe('a claim that the store does not answer', () => {
  it.each([
    [
      { kind: 'unknown', cause: new Error('WRONGPASS invalid password.'), retryable: false },
      'The far store cannot be used, so "x" was not acquired: WRONGPASS invalid password.',
    ],
    [
      { kind: 'unknown', cause: new Error('READONLY a replica\nin full') },
      'The far store could not be asked, so "x" was not acquired: READONLY a replica. Check that it runs, can be reached and takes writes.',
    ],
    [
      { kind: 'unknown', cause: 7 },
      'The far store could not be asked, so "x" was not acquired. Check that it runs, can be reached and takes writes.',
    ],
  ] as const)('is told with what was said: %o', async (answer, message) => {
    const w = world()
    const { holdfast, store } = w.process()
    store.claim = () => answer
    store.inspect = () => answer
    await expect(w.env.until(holdfast.mutex('x').acquire({ wait: 100 }))).rejects.toThrow(message)
    await expect(holdfast.inspect('x')).rejects.toThrow(message.replace(', so "x" was not acquired', ''))
  })

  it('is asked for again soon, and then with pauses that grow to a second', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 100 })
    const asked: number[] = []
    store.claim = () => {
      asked.push(w.env.mono())
      return { kind: 'unknown', cause: new Error('no') }
    }
    const acquired = holdfast
      .mutex('x')
      .acquire({ wait: 20_000 })
      .catch((error: unknown) => error)
    await w.env.advance(19_000)
    const pauses = asked.slice(1).map((at, index) => at - (asked[index] ?? 0))
    expect(pauses[0]).toBeLessThanOrEqual(26)
    expect(pauses[1]).toBeLessThanOrEqual(51)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_001)
    expect(Math.min(...pauses.slice(-10))).toBeGreaterThanOrEqual(500)
    expect(await w.env.until(acquired)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is asked for again at once when somebody else here comes, who has no part in that', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 100 })
    store.lose('claim', 'request', Infinity)
    const first = holdfast.mutex('x').acquire({ wait: 60_000 })
    await w.env.advance(20_000)
    // In the middle of a pause.
    const asked = store.count('claim')
    while (store.count('claim') === asked) await w.env.advance(1)
    await w.env.advance(150)
    store.heal()
    const came = w.env.mono()
    const second = holdfast.mutex('x').acquire({ wait: 60_000 })
    await w.env.until((await w.env.until(first)).release())
    await w.env.until((await w.env.until(second)).release())
    expect(w.env.mono() - came).toBeLessThan(20)
  })
})

describe('many who wait for permits at a store that fails', () => {
  const MANY = 300
  const FAILS = { kind: 'unknown', cause: new Error('LOADING the dataset in memory') } as const
  /** A request of one's own, some with growing pauses, and a few for those who came before. */
  const PER_HEAD = 10

  const arrive = async ({ env }: World, acquire: () => Promise<unknown>): Promise<void> => {
    for (let index = 0; index < MANY; index++) {
      acquire().catch(() => null)
      await env.advance(1)
    }
  }

  it('ask it no more often for each who comes', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    let asked = 0
    store.claim = () => {
      asked++
      return Promise.resolve(FAILS)
    }
    await arrive(w, () => holdfast.semaphore('s', 1000).acquire({ wait: 60_000 }))
    expect(asked).toBeGreaterThanOrEqual(MANY)
    expect(asked).toBeLessThan(PER_HEAD * MANY)
    await holdfast.close({ drain: 0 })
  })

  it('ask it no more often where they stand in line there', async () => {
    const w = world()
    const permits = MANY * 3
    await w.env.until(w.process().holdfast.semaphore('s', permits).acquire({ permits }))
    const { holdfast, store } = w.process()
    const semaphore = holdfast.semaphore('s', permits)
    await arrive(w, () => semaphore.acquire({ wait: 60_000 }))
    let asked = 0
    store.renew = (requests) => {
      asked++
      return Promise.resolve(requests.map(() => FAILS))
    }
    while (asked === 0) await w.env.advance(10)
    const before = asked
    await arrive(w, () => semaphore.acquire({ wait: 60_000 }))
    expect(asked - before).toBeLessThan(PER_HEAD * MANY)
    await holdfast.close({ drain: 0 })
  })
})

describe('who waits for what this process holds already', () => {
  const asked = async (w: World, acquired: Promise<unknown>): Promise<unknown> =>
    w.env.until(acquired.catch((error: unknown) => error))

  it.each([300, 3000])('hears that the store is silent: a reader beside readers, for %i ms', async (wait) => {
    const w = world()
    const { holdfast, store } = w.process()
    const { read } = holdfast.readWriteLock('r')
    const first = await w.env.until(read.acquire())
    await w.env.until(read.acquire())
    await w.env.advance(10)
    store.lose('any', 'request', 1000)
    // From now on only the store could say whether a writer waits.
    store.gap()
    expect(await asked(w, read.acquire({ wait }))).toBeInstanceOf(StoreUnavailableError)
    expect(first.held).toBe(true)
    store.heal()
    const lease = await w.env.until(read.acquire())
    await w.env.until(lease.release())
  })

  it('hears that the store is silent: the next in line, for whom there is no token', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const mutex = holdfast.mutex('m')
    const first = await w.env.until(mutex.acquire())
    const second = mutex.acquire({ wait: 400 })
    await w.env.advance(10)
    store.lose('any', 'request', 1000)
    const outcome = asked(w, second)
    await w.env.until(first.release())
    expect(await outcome).toBeInstanceOf(StoreUnavailableError)
  })

  it('hears that it was not free where somebody here has it, however silent the store is', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const first = await w.env.until(holdfast.mutex('m').acquire())
    store.lose('any', 'request', 1000)
    const outcome = await asked(w, holdfast.mutex('m').acquire({ wait: 7000 }))
    expect(outcome).toBeInstanceOf(LockTimeoutError)
    expect(first.held).toBe(true)
  })

  it('hears that the store is silent: for another permit than those that are held here', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const semaphore = holdfast.semaphore('s', 2)
    await w.env.until(semaphore.acquire())
    store.lose('any', 'request', 1000)
    expect(await asked(w, semaphore.acquire({ wait: 400 }))).toBeInstanceOf(StoreUnavailableError)
    store.heal()
    await w.env.until(semaphore.acquire())
    expect(await asked(w, semaphore.acquire({ wait: 400 }))).toBeInstanceOf(LockTimeoutError)
  })

  it('hears that it was not free, and not of a silence that is over', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    const mutex = holdfast.mutex('m')
    store.lose('claim', 'request', 1000)
    expect(await asked(w, mutex.acquire({ wait: 10_000 }))).toBeInstanceOf(StoreUnavailableError)
    store.heal()
    expect(await w.env.until(mutex.tryAcquire())).not.toBeNull()
    expect(await asked(w, mutex.acquire({ wait: 400 }))).toBeInstanceOf(LockTimeoutError)
  })
})

describe('a waiter at a store that is slow for long', () => {
  it('is asked about with the time that the last answer took, until one comes soon', async () => {
    const w = world()
    await w.env.until(w.process({ ttl: 600_000 }).holdfast.mutex('x').acquire())
    const { holdfast, store } = w.process({ ttl: 60_000 })
    const timeouts: number[] = []
    const { renew } = store
    store.renew = (requests, timeout) => {
      timeouts.push(Math.round(timeout))
      return renew(requests, timeout)
    }
    holdfast
      .mutex('x')
      .acquire({ wait: 600_000 })
      .catch(() => {})
    await w.env.advance(100)
    store.there = 600
    store.back = 600
    await w.env.advance(20_000)
    expect(timeouts.length).toBeGreaterThan(5)
    expect(timeouts[0]).toBe(833)
    expect(new Set(timeouts.slice(1))).toEqual(new Set([1667]))
    store.there = 0
    store.back = 0
    await w.env.advance(5_000)
    expect(timeouts.at(-1)).toBe(833)
    await holdfast.close({ drain: 0 })
  })
})
