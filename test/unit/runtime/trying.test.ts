import { describe, expect, it } from 'vitest'

import type { Lease, Semaphore } from '../../../src/index.ts'
import { world } from './far-store.ts'
import type { World } from './far-store.ts'

/** A semaphore behind a network, and what its store was asked. */
function far(capacity: number): { w: World; semaphore: Semaphore; claims: () => number; gap: () => void } {
  const w = world()
  const { holdfast, store } = w.process()
  store.there = 1
  store.back = 1
  const claims = (): number => store.count('claim')
  return { w, semaphore: holdfast.semaphore('s', capacity), claims, gap: () => store.gap() }
}

describe('a try of a semaphore', () => {
  it('has a permit that is free, although others are being asked for', async () => {
    const { w, semaphore } = far(10)
    const acquired = semaphore.acquire()
    const tried = semaphore.tryAcquire()
    const atOnce = semaphore.acquire({ wait: 0 })
    const leases = await w.env.until(Promise.all([acquired, tried, atOnce]))
    expect(leases).not.toContain(null)
    await w.env.until(Promise.all(leases.map(async (lease) => lease?.release())))
  })

  it('is never refused while permits are free, however many come and go', async () => {
    const { w, semaphore } = far(20)
    const outcomes: (Lease | null)[] = []
    let now = 0
    let most = 0
    const use = async (lease: Lease | null): Promise<void> => {
      outcomes.push(lease)
      most = Math.max(most, ++now)
      await w.env.sleep(5)
      now--
      await lease?.release()
    }
    const work: Promise<void>[] = []
    for (let ms = 0; ms < 200; ms++) {
      await w.env.advance(1)
      work.push(semaphore.acquire().then(use))
      if (ms % 5 === 0) work.push(semaphore.tryAcquire().then(use))
    }
    await w.env.until(Promise.all(work))
    expect(most).toBeLessThan(20)
    expect(outcomes).toHaveLength(240)
    expect(outcomes).not.toContain(null)
  })

  it('is refused at once, without a question, when somebody here is known to wait, or all that can be had is asked for', async () => {
    const { w, semaphore, claims, gap } = far(2)
    const both = await w.env.until(semaphore.acquire({ permits: 2 }))
    const waiting = semaphore.acquire()
    await w.env.advance(20)
    const asked = claims()
    expect(await semaphore.tryAcquire()).toBe(null)
    expect(claims()).toBe(asked)
    // Also while the store is asked whether that one's turn has come.
    gap()
    expect(await semaphore.tryAcquire()).toBe(null)
    expect(claims()).toBe(asked)
    await w.env.until(both.release())
    const lease = await w.env.until(waiting)
    await w.env.until(lease.release())
    const two = [semaphore.acquire(), semaphore.acquire()]
    expect(await semaphore.tryAcquire()).toBe(null)
    const taken = await w.env.until(Promise.all(two))
    await w.env.until(Promise.all(taken.map((each) => each.release())))
  })
})
