import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import type { Lease } from 'holdfast'
import { once } from 'holdfast/recipes'
import { TestLocks } from 'holdfast/testing'

let locks: TestLocks
beforeEach(() => void (locks = new TestLocks()))
afterEach(() => locks.close())

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'fulfilled',
    (error: { code?: unknown }) => error.code,
  )

describe('time', () => {
  it('need not pass for a lock that is free', async () => {
    expect(await locks.holdfast.mutex('train').run(() => 'sold')).toBe('sold')
  })

  it('need not pass for those who hand a lock on', async () => {
    let inside = 0
    const sections = Array.from({ length: 1000 }, () => locks.holdfast.mutex('train').run(() => ++inside))
    await Promise.all(sections)
    expect(inside).toBe(1000)
  })

  it('stands still: a lease has all of its time until the test lets it pass', async () => {
    const lease = await locks.holdfast.mutex('train', { ttl: 5000, renew: false }).acquire()
    const before = lease.remaining()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(lease.remaining()).toBe(before)
    await locks.advance(4000)
    expect(lease.held).toBe(true)
    await locks.advance(1000)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })

  it('passes as far as a promise needs', async () => {
    await using _theirs = await locks.others.mutex('train').acquire()
    const waiting = locks.holdfast.mutex('train').acquire({ wait: 7000 })
    expect(await codeOf(locks.until(waiting))).toBe('LOCK_TIMEOUT')
    await expect(locks.until(locks.holdfast.mutex('train').acquire({ wait: 7000 }), 6000)).rejects.toThrow(
      'still pending',
    )
    await locks.advance(1000)
  })

  it('passes for recipes that are given it', async () => {
    const memory = new Map()
    const job = once(locks.holdfast, 'report', { every: 60_000, run: () => 'run', memory, env: locks.env })
    expect((await job.tick()).kind).toBe('ran')
    expect((await job.tick()).kind).toBe('skipped')
    await locks.advance(60_000)
    expect((await job.tick()).kind).toBe('ran')
  })

  it('passes for leases that are renewed, too', async () => {
    const lease = await locks.holdfast.mutex('train').acquire()
    await locks.advance(3_600_000)
    expect(lease.held).toBe(true)
  })
})

describe('others', () => {
  it('make a lock busy, and free it', async () => {
    const theirs = await locks.others.mutex('train').acquire()
    expect(await locks.holdfast.mutex('train').tryAcquire()).toBeNull()
    const waiting = locks.holdfast.mutex('train').acquire()
    await locks.advance(2000)
    await theirs.release()
    const lease = await locks.until(waiting)
    expect(lease.held).toBe(true)
    expect(locks.history).toEqual([{ name: 'train', token: lease.token, waited: 2000, state: 'held' }])
  })

  it('crash: their lock is free when its ttl is over', async () => {
    await locks.others.mutex('train', { ttl: 5000, renew: false }).acquire()
    expect(await locks.until(locks.holdfast.mutex('train').run(() => 'sold'))).toBe('sold')
  })

  it('hold permits and read', async () => {
    await locks.others.semaphore('gpu', 4).acquire({ permits: 3 })
    await locks.others.readWriteLock('catalog').read.acquire()
    expect(await locks.holdfast.semaphore('gpu', 4).tryAcquire({ permits: 2 })).toBeNull()
    expect(await locks.holdfast.readWriteLock('catalog').read.tryAcquire()).not.toBeNull()
  })
})

describe('a lock that is lost', () => {
  it('tells its holder at once', async () => {
    const done = locks.holdfast.mutex('train').run(async (lease) => {
      locks.lose('train')
      expect(lease.signal.aborted).toBe(true)
      lease.assertHeld()
    })
    expect(await codeOf(done)).toBe('LOCK_LOST')
    expect(locks.history).toMatchObject([{ name: 'train', state: 'lost' }])
    locks.assertNothingHeld()
  })

  it('goes to the next one', async () => {
    const lease = await locks.holdfast.mutex('train').acquire()
    const theirs = locks.others.mutex('train').acquire()
    await locks.advance(0)
    locks.lose('train')
    expect((await locks.until(theirs)).token).toBeGreaterThan(lease.token)
  })

  it('is one that was held by the code under test', async () => {
    expect(() => locks.lose('train')).toThrow('"train" cannot be lost')
    await using _theirs = await locks.others.mutex('train').acquire()
    expect(() => locks.lose('train')).toThrow('the code under test does not hold it')
  })
})

describe('a store in trouble', () => {
  it('takes a lock away of which a slow store has not told yet: it is not believed', async () => {
    const mended = locks.slow(100)
    const waits = locks.holdfast.mutex('train').acquire()
    const tries = locks.holdfast.mutex('bus').tryAcquire()
    locks.lose('train')
    locks.lose('bus')
    mended()
    const theirs = await locks.others.mutex('train').acquire()
    await locks.advance(1000)
    expect(locks.history).toEqual([])
    expect(await tries).toBeNull()
    await theirs.release()
    expect((await locks.until(waits)).held).toBe(true)
    locks.lose('train')
    locks.assertNothingHeld()
  })

  it('is slow: the lease has less time left', async () => {
    locks.slow(2000)
    const lease = await locks.until(locks.holdfast.mutex('train', { ttl: 5000, renew: false }).acquire())
    expect(lease.remaining()).toBeLessThanOrEqual(3000)
  })

  it('is slow for one name', async () => {
    locks.slow(2000, 'train')
    expect(await locks.holdfast.mutex('bus').run(() => 'sold')).toBe('sold')
    let sold = false
    const selling = locks.holdfast.mutex('train').run(() => void (sold = true))
    await locks.advance(1999)
    expect(sold).toBe(false)
    await locks.advance(1)
    expect(sold).toBe(true)
    await locks.until(selling)
  })

  it('is too slow to be waited for, and nothing is left behind', async () => {
    const mended = locks.slow(8000)
    const acquired = locks.holdfast.mutex('train').acquire({ wait: 6000 })
    expect(await codeOf(locks.until(acquired))).toBe('STORE_UNAVAILABLE')
    mended()
    await locks.advance(30_000)
    expect(await locks.others.mutex('train').tryAcquire()).not.toBeNull()
  })

  it('is down: acquiring fails, and what is held is lost when its time is over', async () => {
    const lease = await locks.holdfast.mutex('train', { ttl: 5000 }).acquire()
    const mended = locks.down()
    expect(await codeOf(locks.until(locks.holdfast.mutex('bus').acquire()))).toBe('STORE_UNAVAILABLE')
    await locks.advance(5000)
    expect(lease.held).toBe(false)
    mended()
    mended()
    expect(await locks.until(locks.holdfast.mutex('train').run(() => 'sold'))).toBe('sold')
  })

  it('is down for one name, and comes back in time', async () => {
    const train: Lease = await locks.holdfast.mutex('train', { ttl: 6000 }).acquire()
    const bus: Lease = await locks.holdfast.mutex('bus', { ttl: 6000 }).acquire()
    const mended = locks.down('train')
    await locks.advance(4000)
    expect(train.remaining()).toBeLessThan(bus.remaining())
    mended()
    await locks.advance(60_000)
    expect([train.held, bus.held]).toEqual([true, true])
  })

  it('comes back: those in line hear that they have missed something', async () => {
    const theirs = await locks.others.mutex('train').acquire()
    const waiting = locks.holdfast.mutex('train').acquire()
    await locks.advance(100)
    const mended = locks.down()
    await theirs.release()
    await locks.advance(500)
    mended()
    await locks.advance(100)
    expect((await waiting).held).toBe(true)
  })

  it('does not trouble the others', async () => {
    locks.down()
    expect(await locks.others.mutex('train').run(() => 'sold')).toBe('sold')
  })
})

describe('assertions', () => {
  it('say what is held now', async () => {
    await locks.holdfast.mutex('train').run(() => locks.assertHeld('train'))
    expect(() => locks.assertHeld('train')).toThrow(
      '"train" is not held now. Locked so far: "train" (released).',
    )
    locks.assertLocked('train')
  })

  it('count no lock of another program, and no lock of another test', async () => {
    await using elsewhere = new TestLocks()
    await elsewhere.holdfast.mutex('train').acquire()
    await locks.others.mutex('train').acquire()
    expect(() => locks.assertLocked('train')).toThrow('"train" was never locked. Locked so far: nothing.')
    locks.assertNothingHeld()
  })

  it('find a lock that was forgotten', async () => {
    const lease = await locks.holdfast.semaphore('gpu', 4).acquire()
    expect(() => locks.assertNothingHeld()).toThrow('Still held: "gpu".')
    await lease.release()
    locks.assertNothingHeld()
  })

  it('fail as assertions do', () => {
    expect(() => locks.assertHeld('train')).toThrow(expect.objectContaining({ name: 'AssertionError' }))
  })
})

describe('the end', () => {
  it('is at once, whatever is held, waited for or broken', async () => {
    const lease = await locks.holdfast.mutex('train').acquire()
    const theirs = await locks.others.mutex('bus').acquire()
    const waiting = codeOf(locks.holdfast.mutex('bus').acquire())
    await locks.advance(10)
    locks.slow(60_000)
    locks.down()
    await locks.close()
    await locks.close()
    expect([lease.held, theirs.held, await waiting]).toEqual([false, false, 'CLOSED'])
  })

  it('also comes by await using', async () => {
    let closed: TestLocks
    {
      await using here = new TestLocks()
      closed = here
    }
    expect(closed.holdfast.closed).toBe(true)
  })
})

describe('mistakes', () => {
  it.each([
    [() => new TestLocks({ tme: 'test' } as object), 'Did you mean "time"?'],
    [() => new TestLocks({ time: 'fake' as 'test' }), "time must be 'test' or 'global'"],
    [() => new TestLocks({ env: {} } as object), 'no option "env"'],
    [() => locks.slow(0), 'by must be between 1 and'],
    [() => locks.down(''), 'name must not be empty'],
    [() => locks.assertHeld(undefined as unknown as string), 'name must be a string'],
  ])('are told: %s', (mistake, message) => {
    expect(mistake).toThrow(message)
  })
})
