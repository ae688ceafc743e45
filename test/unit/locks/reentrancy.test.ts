import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import { LockAbortedError, LockLostError, LockReentryError } from '../../../src/index.ts'
import type { Holdfast, Lease, Lock } from '../../../src/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { World } from '../runtime/far-store.ts'

/** The ways to nest: where the outer section is, what is taken inside, and a stranger that both keep out. */
const WAYS = ['mutex in mutex', 'read in read', 'write in write', 'read in write'] as const

interface Pair {
  readonly holdfast: Holdfast
  readonly outer: Lock
  readonly inner: Lock
  readonly stranger: Lock
}

function pair(w: World, way: (typeof WAYS)[number], options: { ttl?: number; maxHold?: number } = {}): Pair {
  const [{ holdfast }, other] = [w.process(options), w.process()]
  if (way === 'mutex in mutex') {
    const mutex = holdfast.mutex('x', { reentrant: true })
    return { holdfast, outer: mutex, inner: mutex, stranger: other.holdfast.mutex('x') }
  }
  const lock = holdfast.readWriteLock('x', { reentrant: true })
  const stranger = other.holdfast.readWriteLock('x').write
  if (way === 'read in read') return { holdfast, outer: lock.read, inner: lock.read, stranger }
  return { holdfast, outer: lock.write, inner: way === 'write in write' ? lock.write : lock.read, stranger }
}

/** A nested lease that outlives the section it was taken in. */
async function kept(
  w: World,
  { outer, inner }: Pair,
  options?: { maxHold: number },
): Promise<[Lease, Lease]> {
  let leases: [Lease, Lease] | undefined
  await w.env.until(outer.run(async (lease) => void (leases = [lease, await inner.acquire(options)])))
  if (leases === undefined) throw new Error('it did not run')
  return leases
}

const thrown = (body: () => void): unknown => {
  try {
    body()
  } catch (error) {
    return error
  }
  return undefined
}

describe.each(WAYS)('a nested lease, %s', (way) => {
  it('keeps the lock when the section around it ends', async () => {
    const w = world()
    const locks = pair(w, way)
    const [outer, inner] = await kept(w, locks)
    expect([outer.held, inner.held, inner.token]).toEqual([false, true, outer.token])
    expect(inner.remaining()).toBeGreaterThan(0)
    expect(outer.remaining()).toBe(0)
    inner.assertHeld()
    expect(thrown(() => outer.assertHeld())).toBeInstanceOf(LockLostError)
    await expect(w.env.until(locks.stranger.tryAcquire())).resolves.toBeNull()
    await expect(w.env.until(inner.release())).resolves.toBe('released')
    expect(inner.held).toBe(false)
    expect(thrown(() => inner.assertHeld())).toBeInstanceOf(LockLostError)
    await expect(w.env.until(inner.release())).resolves.toBe('released')
    await expect(w.env.until(outer.release())).resolves.toBe('released')
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is renewed after the section around it has ended, and lost like any other', async () => {
    const w = world()
    const locks = pair(w, way, { ttl: 900 })
    const [outer, inner] = await kept(w, locks)
    const [before, signal] = [outer.signal, inner.signal]
    await w.env.advance(5000)
    expect(inner.held).toBe(true)
    const info = await w.server.inspect('x', 100)
    if ('kind' in info) throw new Error('no answer')
    await w.server.withdraw({ name: 'x', id: info.holders[0]?.id ?? '' }, 100)
    await w.env.advance(310)
    expect([inner.held, signal.aborted, before.aborted]).toEqual([false, true, false])
    expect(signal.reason).toBeInstanceOf(LockLostError)
    await expect(w.env.until(inner.release())).resolves.toBe('expired')
    await expect(w.env.until(inner.release())).resolves.toBe('expired')
    await expect(w.env.until(outer.release())).resolves.toBe('released')
  })

  it('counts in work that nobody awaits, however deep', async () => {
    const w = world()
    const { outer, inner, stranger } = pair(w, way)
    let inside = 0
    const work = (): Promise<void> =>
      inner.run(async () => {
        inside++
        await w.env.sleep(50)
        await inner.run(() => w.env.sleep(50))
        inside--
      })
    const left: Promise<void>[] = []
    await w.env.until(
      outer.run(async () => {
        left.push(work(), work())
        await w.env.sleep(10)
      }),
    )
    expect(inside).toBe(2)
    await w.env.until(stranger.run(() => expect(inside).toBe(0)))
    await w.env.until(Promise.all(left))
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is lost with the others, all of them before any of them is told', async () => {
    const w = world()
    const locks = pair(w, way, { ttl: 900 })
    const lease = await w.env.until(locks.outer.acquire())
    await w.env.until(lease.release())
    const seen: boolean[] = []
    const outcome = await w.env.until(
      locks.outer
        .run(async (outer) => {
          const inner = await locks.inner.acquire()
          const both = [outer, inner]
          for (const one of both)
            one.signal.addEventListener('abort', () => seen.push(...both.map(({ held }) => held)))
          const info = await w.server.inspect('x', 100)
          if ('kind' in info) throw new Error('no answer')
          await w.server.withdraw({ name: 'x', id: info.holders[0]?.id ?? '' }, 100)
          await w.env.sleep(400)
          seen.push(inner.signal.reason === outer.signal.reason)
          return inner.release()
        })
        .catch((error: unknown) => error),
    )
    expect(seen).toEqual([false, false, false, false, false])
    expect(outcome).toMatchObject({ code: 'LOCK_LOST', outcome: { status: 'fulfilled', value: 'expired' } })
  })

  it('ends with the maxHold of the first of them, and sooner with its own', async () => {
    const w = world()
    const locks = pair(w, way, { maxHold: 1000 })
    const [, inner] = await kept(w, locks)
    const { signal } = inner
    expect(inner.remaining()).toBeLessThanOrEqual(1000)
    await w.env.advance(999)
    expect(inner.held).toBe(true)
    await w.env.advance(2)
    expect([inner.held, signal.aborted]).toEqual([false, true])
    expect(await isClean(w, 'x')).toBe(true)

    const [outer, short] = await w.env.until(
      locks.outer.run(async (first) => {
        const second = await locks.inner.acquire({ maxHold: 100 })
        await w.env.sleep(150)
        expect([first.held, second.held, first.signal.aborted, second.signal.aborted]).toEqual([
          true,
          false,
          false,
          true,
        ])
        return [first, second]
      }),
    )
    expect(outer?.held).toBe(false)
    await expect(w.env.until(short?.release() ?? Promise.reject(new Error()))).resolves.toBe('expired')
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is ended by close', async () => {
    const w = world()
    const locks = pair(w, way)
    const [, inner] = await kept(w, locks)
    const { signal } = inner
    await w.env.until(locks.holdfast.close())
    expect([inner.held, signal.aborted]).toEqual([false, true])
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('can be had with tryAcquire, and not with a signal that has aborted', async () => {
    const w = world()
    const { outer, inner } = pair(w, way)
    await w.env.until(
      outer.run(async () => {
        const lease = await inner.tryAcquire()
        expect(lease?.held).toBe(true)
        const signal = AbortSignal.abort()
        await expect(inner.acquire({ signal })).rejects.toBeInstanceOf(LockAbortedError)
        await expect(inner.tryAcquire({ signal })).rejects.toBeInstanceOf(LockAbortedError)
        await lease?.release()
      }),
    )
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is told as one lock in events: acquired once, released when the last of them is', async () => {
    const w = world()
    const told: string[] = []
    const heard = (_: unknown, channel: string | symbol): number => told.push(String(channel))
    const channels = ['holdfast:acquired', 'holdfast:released', 'holdfast:lost']
    for (const channel of channels) subscribe(channel, heard)
    try {
      const [, inner] = await kept(w, pair(w, way))
      expect(told).toEqual(['holdfast:acquired'])
      await w.env.until(inner.release())
      expect(told).toEqual(['holdfast:acquired', 'holdfast:released'])
    } finally {
      for (const channel of channels) unsubscribe(channel, heard)
    }
  })
})

describe('nested leases and downgrade', () => {
  it('refuse it while a nested writer counts on writing alone', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lock = holdfast.readWriteLock('x', { reentrant: true })
    await w.env.until(
      lock.write.run(async (outer) => {
        const writer = await lock.write.acquire()
        await expect(lock.downgrade(outer)).rejects.toBeInstanceOf(LockReentryError)
        expect([outer.held, writer.held]).toEqual([true, true])
        await writer.release()
        const reader = await lock.read.acquire()
        await lock.downgrade(outer)
        expect([outer.held, reader.held]).toEqual([true, true])
        await reader.release()
      }),
    )
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('leave the readers that remain in their turn when the downgraded lease is released first', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const lock = a.holdfast.readWriteLock('x')
    let nested: Lease | undefined
    await w.env.until(
      lock.write.run(async (outer) => {
        nested = await lock.read.acquire()
        await lock.downgrade(outer)
      }),
    )
    expect(nested?.held).toBe(true)
    const { read, write } = b.holdfast.readWriteLock('x')
    const beside = await w.env.until(read.tryAcquire())
    await w.env.until(beside?.release() ?? Promise.reject(new Error('not let in')))
    await expect(w.env.until(write.tryAcquire())).resolves.toBeNull()
    await w.env.until(nested?.release() ?? Promise.reject(new Error()))
    expect(await isClean(w, 'x')).toBe(true)
  })
})

describe('the inside of a section', () => {
  it('is not where a listener of a lost lease runs, wherever the loss is noticed', async () => {
    const w = world()
    const { holdfast } = w.process({ ttl: 10_000 })
    const lock = holdfast.mutex('mine', { reentrant: true })
    const lease = await w.env.until(holdfast.mutex('lost').acquire({ maxHold: 100 }))
    let tried: Promise<Lease | null> | undefined
    lease.signal.addEventListener('abort', () => void (tried = lock.tryAcquire()))
    await w.env.until(
      lock.run(async () => {
        w.env.jump({ mono: 200 })
        expect(lease.held).toBe(false)
        await expect(tried).resolves.toBeNull()
      }),
    )
  })

  it('ends with its last step: what follows on that is not inside any more', async () => {
    const w = world()
    const { holdfast } = w.process()
    const mutex = holdfast.mutex('x')
    const after: Promise<string>[] = []
    const step = async (): Promise<void> => {
      await w.env.sleep(1)
    }
    await w.env.until(
      mutex.run(async () => {
        const last = step()
        after.push(last.then(() => mutex.run(() => 'alone')))
        await last
      }),
    )
    await expect(w.env.until(Promise.all(after))).resolves.toEqual(['alone'])
    const timer = mutex.run(() => w.env.sleep(5).then(() => mutex))
    await w.env.until(timer.then((lock) => lock.run(() => 1)))
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('can be left: work that nobody waits for starts outside', async () => {
    const w = world()
    const { holdfast } = w.process()
    const mutex = holdfast.mutex('x')
    const order: string[] = []
    const left: Promise<number>[] = []
    await w.env.until(
      mutex.run(async () => {
        left.push(holdfast.outside(() => mutex.run(() => order.push('afterwards'))))
        await w.env.sleep(10)
        order.push('first')
      }),
    )
    await w.env.until(Promise.all(left))
    expect(order).toEqual(['first', 'afterwards'])
  })

  it('of a semaphore counts the permits that the code has: it cannot wait for those', async () => {
    const w = world()
    const { holdfast } = w.process()
    const gpu = holdfast.semaphore('gpu', 3)
    await w.env.until(
      gpu.run(
        async () => {
          await gpu.run(async () => {
            await expect(gpu.acquire()).rejects.toBeInstanceOf(LockReentryError)
            await expect(gpu.tryAcquire()).resolves.toBeNull()
            await expect(gpu.acquire({ wait: 0 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
          })
        },
        { permits: 2 },
      ),
    )
    expect(await isClean(w, 'gpu')).toBe(true)
  })

  it('of another kind of lock with the same name is a mismatch, as it is at the store', async () => {
    const w = world()
    const { holdfast } = w.process()
    const [mutex, lock] = [holdfast.mutex('x'), holdfast.readWriteLock('x')]
    for (const inner of [lock.read, lock.write, holdfast.semaphore('x', 2)]) {
      const running = w.env.until(mutex.run(() => inner.run(() => 1)))
      await expect(running).rejects.toMatchObject({ code: 'CAPACITY_MISMATCH', actual: 1 })
    }
  })

  it('of a semaphore inside of another kind is one however many permits are asked for', async () => {
    const w = world()
    const { holdfast } = w.process()
    const lock = holdfast.readWriteLock('x')
    for (const outer of [holdfast.mutex('x'), lock.read, lock.write, holdfast.semaphore('x', 4)]) {
      for (const permits of [1, 2, 3]) {
        const inner = (): Promise<unknown> => holdfast.semaphore('x', 3).acquire({ permits })
        const running = w.env.until(outer.run(inner))
        await expect(running).rejects.toMatchObject({ code: 'CAPACITY_MISMATCH', expected: 3 })
      }
    }
  })
})
