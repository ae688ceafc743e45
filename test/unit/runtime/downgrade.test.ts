import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import {
  ClosedError,
  InvalidArgumentError,
  LockLostError,
  LockReentryError,
  StoreUnavailableError,
  UnsupportedError,
} from '../../../src/index.ts'
import type { Holdfast, Lease, ReadWriteLock } from '../../../src/index.ts'
import type { NameInfo } from '../../../src/core/contract.ts'
import { isClean, world } from './far-store.ts'
import type { World } from './far-store.ts'

const look = async ({ server }: World): Promise<NameInfo> => {
  const info = await server.inspect('x', 1000)
  if ('kind' in info) throw new Error('no answer')
  return info
}
const weights = async (w: World): Promise<number[]> => (await look(w)).holders.map(({ weight }) => weight)
const lockOf = ({ holdfast }: { readonly holdfast: Holdfast }): ReadWriteLock => holdfast.readWriteLock('x')
/** What became of it so far. */
const state = async (promise: Promise<unknown>): Promise<string> =>
  Promise.race([promise.then(() => 'done', String), Promise.resolve('waiting')])
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a downgrade', () => {
  it('lets readers of other processes in beside the lease, and a writer only after its release', async () => {
    const w = world()
    const [a, b, c] = [w.process(), w.process(), w.process()]
    const lease = await w.env.until(lockOf(a).write.acquire())
    const { token, signal } = lease
    const reading = lockOf(b).read.acquire()
    await w.env.advance(10)
    const writing = lockOf(c).write.acquire()
    await w.env.advance(10)
    await w.env.until(lockOf(a).downgrade(lease))
    const beside = await w.env.until(reading)
    expect([lease.held, lease.token, lease.signal === signal, signal.aborted]).toEqual([
      true,
      token,
      true,
      false,
    ])
    await w.env.until(beside.release())
    await w.env.advance(1000)
    expect(await state(writing)).toBe('waiting')
    expect(await w.env.until(lease.release())).toBe('released')
    expect((await w.env.until(writing)).token).toBeGreaterThan(token)
  })

  it('is asked for again until the store answers, whether the request or the reply got lost', async () => {
    const w = world()
    const a = w.process({ requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.lose('downgrade', 'request', 2)
    a.store.lose('downgrade', 'reply', 2)
    await w.env.until(lockOf(a).downgrade(lease))
    expect(a.store.count('downgrade')).toBe(5)
    expect(await weights(w)).toEqual([1])
    await w.env.advance(60_000)
    expect(lease.held).toBe(true)
    await w.env.until(lease.release())
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('asks with pauses that grow, and that differ', async () => {
    const w = world()
    const a = w.process({ ttl: 60_000, requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.downgrade = () => Promise.resolve({ kind: 'unknown', cause: new Error('no') })
    const asked: number[] = []
    const { downgrade } = a.store
    a.store.downgrade = (claim, timeout) => {
      asked.push(w.env.mono())
      return downgrade(claim, timeout)
    }
    const going = lockOf(a).downgrade(lease)
    await w.env.advance(20_000)
    expect(asked.length).toBeGreaterThan(10)
    expect(asked.length).toBeLessThan(60)
    const last = asked.slice(-6).map((at, index, all) => at - (all[index - 1] ?? at))
    expect(new Set(last.slice(1)).size).toBeGreaterThan(1)
    await w.env.until(Promise.all([lease.release(), expect(going).rejects.toBeInstanceOf(LockLostError)]))
    expect(w.env.foregroundTimers).toBe(0)
  })

  it('that nobody answers ends with the lease', async () => {
    const w = world()
    const a = w.process({ ttl: 900, requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    const before = w.env.mono()
    a.store.lose('any', 'request', Infinity)
    await expect(w.env.until(lockOf(a).downgrade(lease))).rejects.toBeInstanceOf(LockLostError)
    expect(w.env.mono() - before).toBeLessThanOrEqual(900)
    expect([lease.held, lease.signal.aborted]).toEqual([false, true])
  })

  it('of a lease that the store has given away says so, and ends the lease', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    const { signal } = lease
    const [holder] = (await look(w)).holders
    await w.server.withdraw({ name: 'x', id: holder?.id ?? '' }, 100)
    await expect(w.env.until(lockOf(a).downgrade(lease))).rejects.toBeInstanceOf(LockLostError)
    expect([lease.held, signal.aborted]).toEqual([false, true])
    await expect(lockOf(a).downgrade(lease)).rejects.toBeInstanceOf(LockLostError)
  })

  it('of a lease that ends meanwhile rejects at that moment', async () => {
    const w = world()
    const a = w.process({ maxHold: 200 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.there = 500
    const before = w.env.mono()
    await expect(w.env.until(lockOf(a).downgrade(lease))).rejects.toThrow(/maxHold/)
    expect(w.env.mono() - before).toBeLessThanOrEqual(200)
    await w.env.advance(2000)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is done once, however often it is asked for', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.back = 50
    await w.env.until(Promise.all([lockOf(a).downgrade(lease), lockOf(a).downgrade(lease)]))
    await w.env.until(lockOf(a).downgrade(lease))
    expect(a.store.count('downgrade')).toBe(1)
  })

  it('tells who listens', async () => {
    const w = world()
    const a = w.process()
    const seen: unknown[] = []
    const listener = (message: unknown): void => void seen.push(message)
    subscribe('holdfast:downgraded', listener)
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.back = 50
    await w.env.until(lockOf(a).downgrade(lease))
    unsubscribe('holdfast:downgraded', listener)
    expect(seen).toEqual([{ name: 'x', store: 'far', token: lease.token, took: 50 }])
  })

  it('that cannot be answered is told as such; the lease counts as a reader’s, and it may be tried again', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    const { downgrade } = a.store
    a.store.downgrade = () => ({ kind: 'unknown', cause: new Error('no right'), retryable: false })
    await expect(w.env.until(lockOf(a).downgrade(lease))).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(lease.held).toBe(true)
    const writing = lockOf(a).write.acquire()
    await w.env.advance(100)
    expect(await state(writing)).toBe('waiting')
    a.store.downgrade = downgrade
    await w.env.until(lockOf(a).downgrade(lease))
    expect(await weights(w)).toEqual([1])
    await w.env.until(lease.release())
    await w.env.until((await w.env.until(writing)).release())
  })

  it('works where leases are not renewed, and ends when the lease would have ended', async () => {
    const w = world()
    const [a, b] = [w.process({ renew: false, ttl: 1000 }), w.process()]
    const lease = await w.env.until(lockOf(a).write.acquire())
    await w.env.advance(500)
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.until((await w.env.until(lockOf(b).read.acquire())).release())
    await w.env.advance(510)
    expect(lease.held).toBe(false)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('renews no lease that is not to be renewed, also if somebody waits', async () => {
    const w = world()
    const [a, b] = [w.process({ renew: false, ttl: 1000 }), w.process()]
    const lease = await w.env.until(lockOf(a).write.acquire())
    const waiting = [lockOf(a).write.acquire(), lockOf(b).write.acquire()]
    await w.env.advance(600)
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.advance(10)
    expect(lease.remaining()).toBeLessThan(400)
    await w.env.until(Promise.all(waiting.map(async (writing) => (await writing).release())))
  })

  it('leaves the claim of a lock with another ttl its own', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire({ ttl: 900 }))
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.advance(5000)
    expect(lease.held).toBe(true)
    a.store.lose('any', 'request', Infinity)
    await w.env.advance(900)
    expect(lease.held).toBe(false)
  })
})

describe('while a downgrade is under way', () => {
  it('a release gives the claim to no writer of this process, which readers could meet', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const [first, second] = [lockOf(a).write.acquire(), lockOf(a).write.acquire()]
    const readers = new Set<Lease>()
    let met = false
    const writing = lockOf(a).write.run(async () => {
      for (let round = 0; round < 200; round++) {
        met ||= [...readers].some(({ held }) => held)
        await a.env.sleep(1)
      }
    })
    // Two are in line, so two tokens are fetched: the next writer could have it without a word to the store.
    await w.env.until((await w.env.until(first)).release())
    const lease = await w.env.until(second)
    a.store.there = 50
    const going = lockOf(a).downgrade(lease)
    const reading = lockOf(b).read.run(async (beside) => {
      readers.add(beside)
      await b.env.sleep(100)
      readers.delete(beside)
    })
    const [outcome] = await w.env.until(
      Promise.all([lease.release(), expect(going).rejects.toThrow(/released/)]),
    )
    expect(outcome).toBe('released')
    await w.env.until(Promise.all([writing, reading]))
    expect(met).toBe(false)
    await w.env.advance(1000)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('renewals go on, also one that was sent before', async () => {
    const w = world()
    const a = w.process({ ttl: 900 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.back = 60
    await w.env.advance(310)
    expect(a.store.count('renew')).toBe(1)
    await w.env.until(lockOf(a).downgrade(lease))
    a.store.back = 0
    await w.env.advance(5000)
    expect([lease.held, await weights(w)]).toEqual([true, [1]])
    a.store.lose('downgrade', 'request', Infinity)
  })

  it('and unanswered, renewals keep the lease, and no writer of this process gets it', async () => {
    const w = world()
    const a = w.process({ ttl: 900, requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    const writing = lockOf(a).write.acquire()
    a.store.lose('downgrade', 'request', 8)
    const going = lockOf(a).downgrade(lease)
    await w.env.advance(1500)
    expect([await state(going), lease.held]).toEqual(['waiting', true])
    await w.env.until(going)
    expect(await state(writing)).toBe('waiting')
    await w.env.until(lease.release())
    expect((await w.env.until(writing)).token).toBeGreaterThan(lease.token)
  })

  it('readers here that share the claim keep no readers elsewhere out when the lease is over before an answer came', async () => {
    for (const end of ['release', 'maxHold'] as const) {
      const w = world()
      const [a, b] = [w.process({ requestTimeout: 100 }), w.process()]
      const lease = await w.env.until(
        lockOf(a).write.acquire(end === 'maxHold' ? { maxHold: 150 } : undefined),
      )
      a.store.lose('downgrade', 'request', 3)
      const failed = failureOf(lockOf(a).downgrade(lease))
      await w.env.advance(1)
      const beside = await w.env.until(lockOf(a).read.acquire())
      await w.env.advance(end === 'release' ? 110 : 160)
      await w.env.until(lease.release())
      expect(await w.env.until(failed)).toBeInstanceOf(LockLostError)
      const other = await w.env.until(lockOf(b).read.acquire({ wait: 2000 }))
      expect([beside.held, other.held]).toEqual([true, true])
      expect(await weights(w)).toEqual([1, 1])
      await w.env.until(Promise.all([beside.release(), other.release()]))
      expect(await isClean(w, 'x')).toBe(true)
      const asked = a.store.count('downgrade')
      await w.env.advance(5000)
      expect([a.store.count('downgrade'), w.env.foregroundTimers]).toEqual([asked, 0])
    }
  })

  it('is not asked for any more once nobody here has the claim', async () => {
    const w = world()
    const a = w.process({ requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.lose('downgrade', 'request', Infinity)
    const failed = failureOf(lockOf(a).downgrade(lease))
    await w.env.advance(110)
    const asked = a.store.count('downgrade')
    await w.env.until(lease.release())
    expect(await w.env.until(failed)).toBeInstanceOf(LockLostError)
    await w.env.advance(5000)
    expect(a.store.count('downgrade')).toBe(asked)
  })

  it('a renewal that is older than the queue does not hide it from readers here', async () => {
    const w = world()
    const [a, b] = [w.process({ ttl: 3000 }), w.process()]
    // So that it listens.
    const other = a.holdfast.mutex('other')
    await w.env.until((await w.env.until(other.acquire())).release())
    const lease = await w.env.until(lockOf(a).write.acquire())
    const queued = lockOf(a).read.acquire()
    await w.env.advance(990)
    a.store.back = 400
    await w.env.advance(20)
    a.store.back = 0
    const writing = lockOf(b).write.acquire()
    await w.env.advance(10)
    await w.env.until(lockOf(a).downgrade(lease))
    const first = await w.env.until(queued)
    await w.env.advance(420)
    const late = lockOf(a).read.acquire()
    await w.env.advance(20)
    expect(await state(late)).toBe('waiting')
    await w.env.until(Promise.all([lease.release(), first.release()]))
    await w.env.until((await w.env.until(writing)).release())
    await w.env.until((await w.env.until(late)).release())
  })

  it('closing ends it with the lease', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.there = 50
    const going = lockOf(a).downgrade(lease)
    const failed = failureOf(going)
    await w.env.until(a.holdfast.close({ drain: 0 }))
    expect(await w.env.until(failed)).toMatchObject({
      code: 'LOCK_LOST',
      message: expect.stringContaining('closed') as string,
    })
    expect(await isClean(w, 'x')).toBe(true)
    expect(w.env.foregroundTimers).toBe(0)
  })

  it('closing without release ends the asking, and leaves the lease to run out', async () => {
    const w = world()
    const a = w.process({ ttl: 2000, requestTimeout: 100 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.lose('downgrade', 'request', Infinity)
    const going = lockOf(a).downgrade(lease)
    const failed = failureOf(going)
    await w.env.until(a.holdfast.close({ release: false }))
    const asked = a.store.count('downgrade')
    expect(await w.env.until(failed)).toBeInstanceOf(ClosedError)
    expect([lease.held, a.store.count('downgrade')]).toEqual([true, asked])
    await w.env.advance(2001)
    expect(lease.held).toBe(false)
    expect(w.env.foregroundTimers).toBe(0)
  })
})

describe('after a downgrade', () => {
  it('readers of the same process share the claim, with tokens of their own', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    await w.env.until(lockOf(a).downgrade(lease))
    const claims = a.store.count('claim')
    const readers = await w.env.until(Promise.all(Array.from({ length: 20 }, () => lockOf(a).read.acquire())))
    expect(a.store.count('claim')).toBe(claims)
    expect(new Set([lease, ...readers].map(({ token }) => token)).size).toBe(21)
    expect(await weights(w)).toEqual([1])
    await w.env.until(lease.release())
    expect(await weights(w)).toEqual([1])
    expect(readers.every(({ held }) => held)).toBe(true)
    await w.env.until(Promise.all(readers.map((reader) => reader.release())))
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('readers of the same process that waited come in, and their own claim is given up', async () => {
    const w = world()
    const a = w.process()
    const lease = await w.env.until(lockOf(a).write.acquire())
    const reading = Promise.all([lockOf(a).read.acquire(), lockOf(a).read.acquire()])
    await w.env.advance(100)
    expect((await look(w)).waiters).toHaveLength(1)
    await w.env.until(lockOf(a).downgrade(lease))
    const readers = await w.env.until(reading)
    await w.env.advance(100)
    const { holders, waiters } = await look(w)
    expect([holders.length, waiters.length]).toEqual([1, 0])
    await w.env.until(lease.release())
    expect(readers.every(({ held }) => held)).toBe(true)
    await w.env.until(Promise.all(readers.map((reader) => reader.release())))
    await w.env.advance(100)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('readers of the same process come in at once whose own claim is still on its way', async () => {
    const w = world()
    const a = w.process({ requestTimeout: 500 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    a.store.lose('claim', 'request')
    const reading = lockOf(a).read.acquire()
    const before = w.env.mono()
    await w.env.until(lockOf(a).downgrade(lease))
    const reader = await w.env.until(reading)
    expect(w.env.mono() - before).toBeLessThan(10)
    await w.env.until(Promise.all([lease.release(), reader.release()]))
    await w.env.advance(2000)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('readers of the same process that stand behind another one’s writer do not overtake it', async () => {
    const w = world()
    const [a, b] = [w.process({ fair: 'strict' }), w.process()]
    const order: string[] = []
    const lease = await w.env.until(lockOf(a).write.acquire())
    const foreign = lockOf(b).write.run(() => order.push('writer'))
    await w.env.advance(10)
    const local = lockOf(a).read.run(() => order.push('reader'))
    await w.env.advance(10)
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.advance(100)
    expect(order).toEqual([])
    await w.env.until(Promise.all([lease.release(), foreign, local]))
    expect(order).toEqual(['writer', 'reader'])
  })

  it('a new reader does not overtake a writer that waited before, though there is a token left for it', async () => {
    const w = world()
    const [a, b] = [w.process({ fair: 'strict' }), w.process()]
    const controller = new AbortController()
    const { write } = lockOf(a)
    const [first, second] = [write.acquire(), write.acquire()]
    const third = write.acquire({ signal: controller.signal })
    // Two are in line, so two tokens are fetched, and one of them is not needed.
    await w.env.until((await w.env.until(first)).release())
    const lease = await w.env.until(second)
    controller.abort()
    expect(await w.env.until(failureOf(third))).toMatchObject({ code: 'LOCK_ABORTED' })
    const writing = lockOf(b).write.acquire()
    await w.env.advance(10)
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.advance(10)
    expect(await w.env.until(lockOf(a).read.tryAcquire())).toBeNull()
    await w.env.until(lease.release())
    await w.env.until((await w.env.until(writing)).release())
  })

  it('a lost claim ends the lease and those that share it', async () => {
    const w = world()
    const a = w.process({ ttl: 900 })
    const lease = await w.env.until(lockOf(a).write.acquire())
    await w.env.until(lockOf(a).downgrade(lease))
    const reader = await w.env.until(lockOf(a).read.acquire())
    a.store.lose('any', 'request', Infinity)
    await w.env.advance(1000)
    expect([lease.held, reader.held]).toEqual([false, false])
  })

  it('writers of the same process wait for the last reader, in line with those of others', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const order: string[] = []
    const lease = await w.env.until(lockOf(a).write.acquire())
    const foreign = lockOf(b).write.run(() => order.push('foreign'))
    await w.env.advance(10)
    const local = lockOf(a).write.run(() => order.push('local'))
    await w.env.advance(10)
    await w.env.until(lockOf(a).downgrade(lease))
    await w.env.advance(10_000)
    expect(order).toEqual([])
    await w.env.until(lease.release())
    await w.env.until(Promise.all([foreign, local]))
    expect(order).toEqual(['foreign', 'local'])
  })

  it('further readers come in at once where only readers had waited, and not where a writer waits', async () => {
    const w = world()
    const [a, b, c] = [w.process({ fair: 'strict' }), w.process(), w.process()]
    const lease = await w.env.until(lockOf(a).write.acquire())
    // It is told of those who wait only if it listens, which it does once somebody waits here.
    const local = lockOf(a).write.acquire({ wait: 50 })
    const reading = lockOf(b).read.acquire()
    await expect(w.env.until(local)).rejects.toThrow(/not free/)
    await w.env.advance(100)
    await w.env.until(lockOf(a).downgrade(lease))
    const beside = await w.env.until(reading)
    await w.env.advance(10)
    await w.env.until((await w.env.until(lockOf(a).read.acquire({ wait: 100 }))).release())
    const writing = lockOf(c).write.acquire()
    await w.env.advance(10)
    expect(await w.env.until(lockOf(a).read.tryAcquire())).toBeNull()
    await w.env.until(Promise.all([lease.release(), beside.release()]))
    await w.env.until((await w.env.until(writing)).release())
  })

  it('its own run reads again inside, and is refused to write, re-entrant or not', async () => {
    const w = world()
    const { holdfast } = w.process()
    for (const reentrant of [false, true]) {
      const lock = holdfast.readWriteLock('x', { reentrant })
      await w.env.until(
        lock.write.run(async (lease) => {
          await lock.downgrade(lease)
          await lock.read.run((inner) => expect(inner.token).toBe(lease.token))
          await expect(lock.write.acquire()).rejects.toBeInstanceOf(LockReentryError)
          await expect(lock.write.run(() => 1)).rejects.toThrow(/downgraded/)
          lease.assertHeld()
        }),
      )
    }
    expect(await isClean(w, 'x')).toBe(true)
  })
})

describe('a downgrade is refused', () => {
  it('for anything but a lease of the lock’s own write side', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const lock = lockOf(a)
    const reader = await w.env.until(lock.read.acquire())
    const mutex = await w.env.until(a.holdfast.mutex('m').acquire())
    const other = await w.env.until(a.holdfast.readWriteLock('y').write.acquire())
    const foreign = await w.env.until(b.holdfast.readWriteLock('z').write.acquire())
    const set = await w.env.until(a.holdfast.all([a.holdfast.readWriteLock('s').write]).acquire())
    const refused = (of: ReadWriteLock, lease: Lease): Promise<void> =>
      expect(of.downgrade(lease)).rejects.toBeInstanceOf(InvalidArgumentError)
    await refused(lock, reader)
    await refused(lock, other)
    await refused(lock, {} as Lease)
    await refused(a.holdfast.readWriteLock('m'), mutex)
    await refused(a.holdfast.readWriteLock('z'), foreign)
    await refused(a.holdfast.readWriteLock('s'), set)
    await w.env.until(a.holdfast.readWriteLock('s').downgrade(set.leases[0] as Lease))
    expect(a.store.count('downgrade')).toBe(1)
  })

  it('for a nested lease, whose outer one still counts on writing alone', async () => {
    const w = world()
    const a = w.process()
    const lock = a.holdfast.readWriteLock('x', { reentrant: true })
    await w.env.until(
      lock.write.run(async () => {
        const inner = await lock.write.acquire()
        await expect(lock.downgrade(inner)).rejects.toThrow(/nested/)
      }),
    )
    expect(a.store.count('downgrade')).toBe(0)
  })

  it('by a store that cannot do it, and the lease stays a writer’s', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const lease = await w.env.until(lockOf(a).write.acquire())
    Object.assign(a.store, { downgrade: undefined })
    await expect(lockOf(a).downgrade(lease)).rejects.toBeInstanceOf(UnsupportedError)
    lease.assertHeld()
    expect(await w.env.until(lockOf(b).read.tryAcquire())).toBeNull()
  })
})
