import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { Holdfast } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { TestLocks } from 'holdfast/testing'
import { pause } from '../../../src/stores/sql/user-table.ts'

afterEach(() => void vi.useRealTimers())

// What Jest does is looked at by `npm run check:fit`.
describe('fake timers', () => {
  it('that are set after holdfast was loaded do not reach locks: time passes for them as ever', async () => {
    vi.useFakeTimers()
    const holdfast = new Holdfast(memoryStore(), { ttl: 60_000 })
    const lease = await holdfast.mutex('train').acquire()
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(lease.held).toBe(true)
    expect(lease.remaining()).toBeGreaterThan(30_000)
    await expect(holdfast.mutex('train').acquire({ wait: 20 })).rejects.toThrow(
      expect.objectContaining({ code: 'LOCK_TIMEOUT' }),
    )
    await lease.release()
    await holdfast.close()
  })

  // That each module takes its timers when it is loaded, lint looks after (.oxlintrc.json).
  it('do not reach what a store waits for before it tries again', async () => {
    vi.useFakeTimers()
    await pause(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('that are there when holdfast is loaded freeze its locks, as the guide says: load it before', async () => {
    const loaded = async (): Promise<Holdfast> => {
      const [root, memory] = await Promise.all([import('holdfast'), import('holdfast/memory')])
      return new root.Holdfast(memory.memoryStore())
    }
    vi.resetModules()
    const before = await loaded()
    vi.useFakeTimers()
    vi.resetModules()
    const after = await loaded()
    vi.useRealTimers()
    const wait = async (holdfast: Holdfast): Promise<unknown> => {
      await holdfast.mutex('train').acquire()
      const waited = holdfast.mutex('train').acquire({ wait: 20 })
      const enough = new Promise((resolve) => setTimeout(resolve, 1000, 'frozen'))
      return Promise.race([waited.catch((error: { code: string }) => error.code), enough])
    }
    expect(await Promise.all([wait(before), wait(after)])).toEqual(['LOCK_TIMEOUT', 'frozen'])
  })
})

describe('TestLocks that go by the global time', () => {
  let locks: TestLocks
  beforeEach(() => {
    vi.useFakeTimers()
    locks = new TestLocks({ time: 'global' })
  })
  afterEach(() => locks.close())

  it('move with the fake timers of the runner', async () => {
    const theirs = await locks.others.mutex('train').acquire()
    await Promise.all([
      expect(locks.holdfast.mutex('train').acquire({ wait: 5000 })).rejects.toThrow(
        expect.objectContaining({ code: 'LOCK_TIMEOUT', waited: 5000 }),
      ),
      vi.advanceTimersByTimeAsync(5000),
    ])
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(theirs.held).toBe(true)
  })

  it('lose a lease that is not renewed when fake time is over', async () => {
    const lease = await locks.holdfast.mutex('train', { renew: false, ttl: 5000 }).acquire()
    await vi.advanceTimersByTimeAsync(4000)
    expect(lease.held).toBe(true)
    await vi.advanceTimersByTimeAsync(1000)
    expect(lease.signal.aborted).toBe(true)
  })

  it('hand a lock on without any time', async () => {
    let inside = 0
    await Promise.all(Array.from({ length: 1000 }, () => locks.holdfast.mutex('train').run(() => ++inside)))
    expect(inside).toBe(1000)
  })

  it('lose nothing when the date is set', async () => {
    const lease = await locks.holdfast.mutex('train').acquire()
    vi.setSystemTime(new Date('2040-01-01'))
    expect(lease.held).toBe(true)
  })

  it('go on when the timers are real again, and when they are fake again', async () => {
    const lease = await locks.holdfast.mutex('train', { ttl: 5000, renew: false }).acquire()
    await vi.advanceTimersByTimeAsync(2000)
    vi.useRealTimers()
    expect(lease.remaining()).toBeGreaterThan(2000)
    vi.useFakeTimers()
    expect(lease.remaining()).toBeGreaterThan(2000)
    expect(lease.remaining()).toBeLessThanOrEqual(3000)
  })

  it('close also when the store’s answer is late, by timers that nobody moves any more', async () => {
    locks.slow(1000)
    const outcome = locks.holdfast
      .mutex('train')
      .acquire()
      .catch((error: { code: string }) => error.code)
    await vi.advanceTimersByTimeAsync(10)
    vi.useRealTimers()
    expect(await Promise.all([locks.close(), outcome])).toEqual([undefined, 'CLOSED'])
  })

  it('are not moved by themselves', async () => {
    await expect(locks.advance(1000)).rejects.toThrow('advanceTimersByTimeAsync')
  })
})

it('TestLocks refuse fake timers that no clock goes with', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  expect(() => new TestLocks({ time: 'global' })).toThrow('leave out performance')
})

it('TestLocks go by the system where nothing is fake, also with a fixed date', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await using locks = new TestLocks({ time: 'global' })
  await using _theirs = await locks.others.mutex('train').acquire()
  await expect(locks.holdfast.mutex('train').acquire({ wait: 20 })).rejects.toThrow(
    expect.objectContaining({ code: 'LOCK_TIMEOUT' }),
  )
})

it('TestLocks with a clock of their own go by that, whatever the timers', async () => {
  vi.useFakeTimers()
  await using locks = new TestLocks()
  const lease = await locks.holdfast.mutex('train', { ttl: 5000, renew: false }).acquire()
  await locks.advance(5000)
  expect(lease.held).toBe(false)
})
