import { describe, expect, it } from 'vitest'

import { InvalidArgumentError, LockReentryError, LockTimeoutError } from '../../../src/index.ts'
import type { Holdfast, Lease, LeaseSet } from '../../../src/index.ts'
import { isClean, world } from '../runtime/far-store.ts'

describe('inside of several locks', () => {
  it('each of them is held: asking for it again fails at once', async () => {
    const w = world()
    const { holdfast } = w.process()
    const before = w.env.mono()
    for (const name of ['a', 'b']) {
      const lock = holdfast.mutex(name)
      const take = [
        () => lock.run(() => 1),
        () => lock.tryAcquire(),
        () => holdfast.all([name, 'c']).acquire(),
      ]
      for (const inner of take) {
        const running = holdfast.all(['b', 'a']).run(async () => void (await inner()))
        await expect(w.env.until(running)).rejects.toBeInstanceOf(LockReentryError)
      }
    }
    expect(w.env.mono()).toBe(before)
    for (const name of ['a', 'b', 'c']) expect(await isClean(w, name)).toBe(true)
  })

  it('re-entrant ones are shared and counted, readers too', async () => {
    const w = world()
    const [{ holdfast }, other] = [w.process(), w.process()]
    const [mutex, lock] = [holdfast.mutex('m', { reentrant: true }), holdfast.readWriteLock('rw')]
    const nested: Lease[] = []
    await w.env.until(
      holdfast.all([mutex, lock.write]).run(async ({ leases }) => {
        nested.push(await mutex.acquire(), await lock.read.acquire())
        expect(nested.map(({ token }) => token)).toEqual(leases.map(({ token }) => token))
        await expect(lock.write.acquire()).rejects.toBeInstanceOf(LockReentryError)
      }),
    )
    await expect(w.env.until(other.holdfast.mutex('m').tryAcquire())).resolves.toBeNull()
    await w.env.until(Promise.all(nested.map((lease) => lease.release())))
    await expect(w.env.until(holdfast.all(['p', 'q'], { reentrant: true }).run(() => 1))).resolves.toBe(1)
    for (const name of ['m', 'rw']) expect(await isClean(w, name)).toBe(true)
  })

  it('a wait in vain says how long the whole call took, and not what was left for the last of them', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const first = await w.env.until(b.holdfast.mutex('x').acquire())
    await w.env.until(b.holdfast.mutex('y').acquire())
    const waiting = a.holdfast.all(['x', 'y']).acquire({ wait: 1000 })
    const failed = waiting.catch((error: unknown) => error)
    await w.env.advance(900)
    await w.env.until(first.release())
    expect(await w.env.until(failed)).toMatchObject({ code: 'LOCK_TIMEOUT', lock: 'y', waited: 1000 })
  })

  it('a wait that the first of them has used up ends there, and is no try for the next', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    Object.assign(store, { there: 10, back: 19.8 })
    const began = w.env.mono()
    const failed = holdfast
      .all(['x', 'y'])
      .acquire({ wait: 30 })
      .catch((error: unknown) => error)
    await w.env.advance(20)
    // Whoever asks now gets no answer, and a try would wait for one as long as a request may take.
    store.lose('claim', 'request')
    expect(await w.env.until(failed)).toMatchObject({ code: 'LOCK_TIMEOUT', lock: 'y' })
    expect(w.env.mono() - began).toBeLessThan(200)
    expect(store.count('claim')).toBe(1)
    await w.env.advance(1000)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('sets within sets follow the same rule, and touch nothing when one of them cannot be had', async () => {
    const w = world()
    const { holdfast, store } = w.process()
    await w.env.until(
      holdfast.all(['b', 'c']).run(async () => {
        const asked = store.count()
        await expect(holdfast.all(['a', 'b']).run(() => 1)).rejects.toBeInstanceOf(LockReentryError)
        await expect(holdfast.all(['a', 'b']).tryAcquire()).rejects.toBeInstanceOf(LockReentryError)
        expect(store.count()).toBe(asked)
        await holdfast.all(['d', 'e']).run(() => 1)
      }),
    )
  })
})

describe('a set with a semaphore, inside of that', () => {
  it('fails at once when the code has the permits itself, and waits for no other lock of the set first', async () => {
    const w = world()
    const [{ holdfast }, other] = [w.process(), w.process()]
    const semaphore = holdfast.semaphore('s', 2)
    const busy = await w.env.until(other.holdfast.mutex('a').acquire())
    const before = w.env.mono()
    const inside = (take: () => Promise<unknown>, permits: number): Promise<unknown> =>
      w.env.until(semaphore.run(take, { permits }))
    const set = holdfast.all(['a', semaphore])
    await expect(inside(() => set.acquire(), 2)).rejects.toBeInstanceOf(LockReentryError)
    await expect(inside(() => set.run(() => 1), 2)).rejects.toBeInstanceOf(LockReentryError)
    // Who does not wait hears what is free.
    await expect(inside(() => set.tryAcquire(), 2)).resolves.toBeNull()
    await expect(inside(() => set.acquire({ wait: 0 }), 2)).rejects.toBeInstanceOf(LockTimeoutError)
    expect(w.env.mono()).toBe(before)
    await w.env.until(busy.release())
    await expect(inside(() => set.run(() => 1), 1)).resolves.toBe(1)
  })
})

describe('the maxHold of a set', () => {
  it('counts from when all are held: who waited for the last has the whole of it', async () => {
    const w = world()
    const { holdfast } = w.process()
    const before = await w.env.until(w.process().holdfast.mutex('b').acquire())
    const acquired = holdfast.all(['a', 'b']).acquire({ maxHold: 300 })
    await w.env.advance(1000)
    await w.env.until(before.release())
    const set = await w.env.until(acquired)
    const had = w.env.mono()
    expect(set.leases.map((lease) => lease.remaining())).toEqual([300, 300])
    await w.env.advance(had + 299 - w.env.mono())
    expect([set.held, set.signal.aborted]).toEqual([true, false])
    await w.env.advance(2)
    expect([set.held, set.signal.aborted]).toEqual([false, true])
    expect([await isClean(w, 'a'), await isClean(w, 'b')]).toEqual([true, true])
  })

  it("is each lock's own where the call says nothing, and is refused where it is none", async () => {
    const w = world()
    const { holdfast } = w.process()
    const set = holdfast.all([holdfast.mutex('a', { maxHold: 50 }), holdfast.mutex('b')], { maxHold: 80 })
    const leases = (await w.env.until(set.tryAcquire())) as LeaseSet
    await w.env.advance(60)
    expect(leases.leases.map(({ held }) => held)).toEqual([false, true])
    await w.env.until(leases.release())
    for (const maxHold of [0, -1, NaN, 'long' as never]) {
      await expect(set.acquire({ maxHold })).rejects.toBeInstanceOf(InvalidArgumentError)
      await expect(set.tryAcquire({ maxHold })).rejects.toBeInstanceOf(InvalidArgumentError)
    }
    expect(await isClean(w, 'a')).toBe(true)
  })

  it('ends what is shared with the section around it no later than that', async () => {
    const w = world()
    const { holdfast } = w.process()
    const mutex = holdfast.mutex('a', { reentrant: true })
    const inside = mutex.run(async (outer) => {
      const set = await holdfast.all([mutex, 'b']).acquire({ maxHold: 100 })
      await w.env.sleep(150)
      return [set.leases.map(({ held }) => held), outer.held]
    })
    expect(await w.env.until(inside)).toEqual([[false, false], true])
  })
})

describe('equal names in a set', () => {
  it('count once', async () => {
    const w = world()
    const { holdfast } = w.process()
    const set = holdfast.all(['b', 'a', 'b', holdfast.mutex('a')])
    expect(set.names).toEqual(['a', 'b'])
    await expect(w.env.until(set.run(({ leases }) => leases.length))).resolves.toBe(2)
  })

  it('are what two keys of one stripe have', async () => {
    const w = world()
    const { holdfast } = w.process()
    const striped = holdfast.striped('seats', 4)
    for (let n = 0; n < 50; n++) {
      const set = holdfast.all([striped.for(`seat ${n}`), striped.for(`seat ${n + 1}`)])
      await expect(w.env.until(set.run(({ held }) => held))).resolves.toBe(true)
    }
  })

  it('must be of one kind, and not of a semaphore', () => {
    const { holdfast } = world().process()
    const { read, write } = holdfast.readWriteLock('x')
    const semaphore = holdfast.semaphore('x', 3)
    expect(() => holdfast.all([read, write])).toThrow(/"x" is in it for reading and for writing.*write/)
    expect(() => holdfast.all(['x', read])).toThrow(/"x" is in it as two kinds of lock/)
    expect(() => holdfast.all([semaphore, semaphore])).toThrow(/"x" is a semaphore.*permits/)
    expect(() => holdfast.all([semaphore, holdfast.semaphore('x', 4)])).toThrow(InvalidArgumentError)
    expect(holdfast.all([write, write]).names).toEqual(['x'])
  })

  it('may not be of two stores: nobody could say which comes first', () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    expect(() => a.holdfast.all(['x', b.holdfast.mutex('x')])).toThrow(/same Holdfast/)
  })
})

describe('what is not a lock', () => {
  it.each([
    ['a read-write lock', (h: Holdfast) => h.readWriteLock('x'), /read or write/],
    ['a striped lock', (h: Holdfast) => h.striped('x', 2), /for\(key\)/],
    ['undefined', () => undefined, /locks\[1\]/],
  ])('is refused with what to pass instead: %s', (_, wrong, message) => {
    const { holdfast } = world().process()
    expect(() => holdfast.all(['a', wrong(holdfast) as unknown as string])).toThrow(message)
    expect(() => holdfast.all(['a', wrong(holdfast) as unknown as string])).toThrow(InvalidArgumentError)
  })
})

describe('several locks', () => {
  it('have no permits: whoever asks for some hears so, trying or waiting', async () => {
    const { holdfast } = world().process()
    const set = holdfast.all(['a', 'b'])
    const permits = { permits: 2 } as object
    const refusal = { code: 'INVALID_ARGUMENT', argument: 'permits' }
    await expect(set.acquire(permits)).rejects.toMatchObject(refusal)
    await expect(set.tryAcquire(permits)).rejects.toMatchObject(refusal)
  })
})
