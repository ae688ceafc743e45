import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Store } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'

/**
 * A program that tries again at once, without a pause and for as long as it is refused. Its own timers, sockets and signals must have their
 * turn: what would end the loop comes from there.
 */

const MOST = 5000

/** Tries until the event loop has come round, so often at the most. How often that was. */
async function triesUntilTurned(attempt: () => Promise<unknown>): Promise<number> {
  let turned = false
  setImmediate(() => (turned = true))
  let tries = 0
  for (; !turned && tries < MOST; tries++) await attempt().catch(() => null)
  return tries
}

const unknown = { kind: 'unknown', cause: new Error('three of five are down') } as const

/** A store whose every claim is answered without I/O. */
function answering(claim: Store['claim']): Holdfast {
  return new Holdfast(Object.assign(memoryStore(), { claim }))
}

describe('a loop that tries again at once lets the event loop turn', () => {
  it('when another process has it, by a store that answers at once', async () => {
    const store = memoryStore()
    const lease = await new Holdfast(store).mutex('m').acquire()
    const holdfast = new Holdfast(store)
    const mutex = holdfast.mutex('m')
    expect(await triesUntilTurned(() => mutex.tryAcquire())).toBeLessThan(MOST)
    expect(await triesUntilTurned(() => mutex.acquire({ wait: 0 }))).toBeLessThan(MOST)
    expect(await triesUntilTurned(() => holdfast.all(['a', 'm']).tryAcquire())).toBeLessThan(MOST)
    await lease.release()
  })

  it('when this process has it, and the store is not even asked', async () => {
    const mutex = new Holdfast(memoryStore()).mutex('m')
    const lease = await mutex.acquire()
    expect(await triesUntilTurned(() => mutex.tryAcquire())).toBeLessThan(MOST)
    await lease.release()
  })

  it('when the store cannot be reached, and says so at once or in a promise', async () => {
    const atOnce = answering(() => unknown).mutex('m')
    expect(await triesUntilTurned(() => atOnce.tryAcquire())).toBeLessThan(MOST)
    const soon = answering(() => Promise.resolve(unknown)).mutex('m')
    expect(await triesUntilTurned(() => soon.tryAcquire())).toBeLessThan(MOST)
  })

  it('when the store cannot be used at all, or not in this way, for those that would have waited too', async () => {
    const useless = answering(() => ({ ...unknown, retryable: false })).mutex('m')
    expect(await triesUntilTurned(() => useless.acquire())).toBeLessThan(MOST)
    const holdfast = new Holdfast(memoryStore())
    const lease = await holdfast.mutex('m').acquire()
    const other = holdfast.semaphore('m', 3)
    expect(await triesUntilTurned(() => other.acquire())).toBeLessThan(MOST)
    await lease.release()
  })

  it('when the Holdfast is closing: a worker that takes the next job at once does not keep it from its end', async () => {
    const holdfast = new Holdfast(memoryStore())
    const lease = await holdfast.mutex('other').acquire()
    const closed = holdfast.close({ drain: 60_000 })
    const job = holdfast.mutex('job')
    expect(await triesUntilTurned(() => job.run(() => 1))).toBeLessThan(MOST)
    await lease.release()
    expect((await closed).cutShort).toEqual([])
  })

  it('when its signal has aborted', async () => {
    const mutex = new Holdfast(memoryStore()).mutex('m')
    const signal = AbortSignal.abort()
    expect(await triesUntilTurned(() => mutex.tryAcquire({ signal }))).toBeLessThan(MOST)
    expect(await triesUntilTurned(() => mutex.acquire({ signal }))).toBeLessThan(MOST)
  })
})
