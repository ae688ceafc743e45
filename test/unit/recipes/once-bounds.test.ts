import { describe, expect, it } from 'vitest'

import { HoldfastError } from '../../../src/index.ts'
import { once } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import type { World } from '../runtime/far-store.ts'
import { fleet } from './fleet.ts'
import { SharedCache } from './kit.ts'

describe('a tick while the store falls silent', () => {
  /** Long enough for one request to each of the lock, the memory and the lock again, and no longer. */
  const BOUND = 20_000

  it.each(['request', 'reply'] as const)(
    'between the lock and the memory ends in its own time with a typed error (%s lost), and lets the process exit',
    async (loss) => {
      const w = world()
      const { first, second, runs } = fleet(w, 2)
      const { store } = first.process
      const { claim } = store
      store.claim = (request, timeout) => {
        // The first claim is the job's lock, the second is the memory.
        if (store.count('claim') === 1) store.lose('any', loss, Infinity)
        return claim(request, timeout)
      }
      const from = w.env.mono()
      const error = await w.env.until(first.job.tick().catch((reason: unknown) => reason))
      expect(error).toBeInstanceOf(HoldfastError)
      expect(w.env.mono() - from).toBeLessThan(BOUND)
      expect(runs).toEqual([])
      await w.env.runUntilIdle(60_000)
      // The store is back: what may have been left of the attempt does not count as a run.
      first.process.store.heal()
      await w.env.advance(60_000)
      expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
    },
  )

  it('at the end of a job that is to be run again ends in its own time', async () => {
    const w = world()
    const { first } = fleet(w, 2, {
      afterFailure: 'retry',
      run: () => {
        first.process.store.lose('any', 'request', Infinity)
        throw new Error('no paper')
      },
    })
    const from = w.env.mono()
    await expect(w.env.until(first.job.tick())).rejects.toThrow('no paper')
    expect(w.env.mono() - from).toBeLessThan(BOUND)
    await w.env.runUntilIdle(60_000)
  })

  it('or the cache that is its memory does', async () => {
    const w = world()
    const memory = { get: () => new Promise<never>(() => {}), set: () => {}, delete: () => {} }
    const { first, second } = fleet(w, 2, { memory })
    const from = w.env.mono()
    await expect(w.env.until(first.job.tick())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(w.env.mono() - from).toBeLessThan(BOUND)
    expect(await w.env.until(second.process.holdfast.mutex('report').tryAcquire())).not.toBe(null)
  })
})

describe('a job and the closing of its Holdfast', () => {
  it('is not started any more', async () => {
    const w = world()
    const { first, runs } = fleet(w, 2)
    await w.env.until(first.process.holdfast.close())
    await expect(w.env.until(first.job.tick())).rejects.toMatchObject({ code: 'CLOSED' })
    expect(runs).toEqual([])
  })

  it('is not started when that happens between its lock and its memory, and leaves the period to the others', async () => {
    const w = world()
    const { first, second, runs } = fleet(w, 2)
    first.process.store.there = first.process.store.back = 10
    const tick = first.job.tick().catch((error: unknown) => error)
    await w.env.advance(30)
    const closed = first.process.holdfast.close()
    expect(await w.env.until(tick)).toBeInstanceOf(HoldfastError)
    await w.env.until(closed)
    expect(runs).toEqual([])
    await w.env.advance(1000)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
  })

  it('keeps the process for no longer than the job takes', async () => {
    const w = world()
    const { first, second } = fleet(w, 2)
    const tick = first.job.tick().catch((error: unknown) => error)
    await w.env.advance(50)
    const closed = first.process.holdfast.close()
    await w.env.until(Promise.all([tick, closed]))
    const from = w.env.mono()
    await w.env.runUntilIdle()
    expect(w.env.mono() - from).toBeLessThan(1000)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'skipped' })
  })
})

describe('what is remembered', () => {
  it.each([
    ['a claim', () => ({})],
    ['a memory', (w: World) => ({ memory: new SharedCache(w.env) })],
  ])('never ends before its time, however slow the answers: %s', async (_, options) => {
    for (const [there, back] of [
      [0, 0],
      [1, 1],
      [50, 200],
      [200, 50],
    ] as const) {
      for (const took of [0, 19_990, 25_000]) {
        const w = world()
        const { instances, runs } = fleet(w, 2, {
          atLeast: 20_000,
          run: async () => {
            runs.push(w.env.mono())
            await w.env.sleep(took)
            return 1
          },
          ...options(w),
        })
        for (const { process } of instances) Object.assign(process.store, { there, back })
        const ends = w.env.mono() + 30_000
        const ticking = instances.map(async ({ job }) => {
          while (w.env.mono() < ends) {
            await job.tick()
            await w.env.sleep(100)
          }
        })
        await w.env.until(Promise.all(ticking))
        const gaps = runs.slice(1).map((at, n) => at - (runs[n] ?? 0))
        expect(gaps.length).toBeGreaterThan(0)
        expect(Math.min(...gaps)).toBeGreaterThanOrEqual(20_000)
        expect(Math.min(...gaps)).toBeLessThan(
          20_000 + Math.max(0, took - 20_000) + 2000 + 4 * (there + back),
        )
      }
    }
  })
})

describe('a run whose end the store did not hear of', () => {
  it.each(['request', 'reply'] as const)('is remembered as long as any other (%s lost)', async (loss) => {
    for (const times of [1, 3]) {
      const w = world()
      const { instances, first, runs } = fleet(w, 2, {
        atLeast: 20_000,
        run: () => {
          if (runs.length === 0) first.process.store.lose('renew', loss, times)
          return runs.push(w.env.mono())
        },
      })
      // The run begins when the answer is there: so much later than the store began to count.
      Object.assign(first.process.store, { there: 10, back: 500 })
      await w.env.until(first.job.tick())
      while (runs.length < 2) {
        for (const { job } of instances.slice(1)) await w.env.until(job.tick())
        await w.env.advance(20)
      }
      const [began = 0, next = 0] = runs
      expect(next - began).toBeGreaterThanOrEqual(20_000)
      expect(next - began).toBeLessThan(21_000)
    }
  })

  it('is told again for a minute, and no longer', async () => {
    const w = world()
    const { first } = fleet(w, 2)
    const { store } = first.process
    store.lose('renew', 'request', Infinity)
    await w.env.until(first.job.tick())
    const atFirst = store.count('renew')
    await w.env.advance(70_000)
    const inAll = store.count('renew')
    expect(inAll).toBeGreaterThan(atFirst)
    await w.env.advance(600_000)
    expect(store.count('renew')).toBe(inAll)
    expect(w.env.timers).toBe(0)
  })
})

describe('the mark of a run', () => {
  it('has a name that a lock may have, or the job is refused when it is made', () => {
    const { holdfast } = world().process()
    const job = (name: string): unknown => once(holdfast, name, { every: 60_000, run: () => 1 })
    expect(() => job('x'.repeat(509))).toThrow('at most 512 bytes')
    expect(() => job('x'.repeat(508))).not.toThrow()
  })

  it('that is the name of another kind of lock is an error, and not a run of somebody else', async () => {
    const w = world()
    const { first, runs } = fleet(w, 2)
    const { holdfast } = first.process
    const lease = await w.env.until(holdfast.semaphore('report:ran', 3).acquire())
    await expect(w.env.until(first.job.tick())).rejects.toMatchObject({ code: 'CAPACITY_MISMATCH' })
    await w.env.until(lease.release())
    expect(runs).toEqual([])
    expect(await w.env.until(first.job.tick())).toMatchObject({ kind: 'ran' })
  })
})
