import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { InvalidArgumentError } from '../../../src/index.ts'
import type { AcquireOptions, Holdfast, HoldfastOptions, LockOptions } from '../../../src/index.ts'
import { world } from '../runtime/far-store.ts'

const holdfastWith = (options: unknown): Holdfast => world().process(options as HoldfastOptions).holdfast

describe('a name', () => {
  it.each([
    ['empty', ''],
    ['longer than 512 bytes of UTF-8', 'ü'.repeat(257)],
    ['with a line break', 'a\nb'],
    ['with NUL', 'a\0b'],
    ['with an escape character', '\u001b[31m'],
    ['with half of a surrogate pair', 'a\ud800b'],
    ['that is no string', 7 as unknown as string],
    ['that is missing', undefined as unknown as string],
  ])('%s is refused before the store is asked', (_, name) => {
    const { holdfast, store } = world().process()
    for (const make of [
      () => holdfast.mutex(name),
      () => holdfast.readWriteLock(name),
      () => holdfast.semaphore(name, 2),
      () => holdfast.striped(name, 2),
      () => holdfast.all([name]),
    ]) {
      expect(make).toThrow(InvalidArgumentError)
    }
    expect(store.count()).toBe(0)
  })

  it.each([
    [null, 'got null'],
    [undefined, 'got undefined'],
    [7, 'got 7'],
    [{ secret: 1 }, 'got an object'],
    ['a\nb', 'got "a\\nb"'],
    ['x'.repeat(600), `got "${'x'.repeat(40)}…"`],
  ])('that is refused is shown, as far as that helps', (name, shown) => {
    const { holdfast } = world().process()
    expect(() => holdfast.mutex(name as string)).toThrow(shown)
  })

  it.each(['a', ' ', 'ü'.repeat(256), '🚂'.repeat(128), '{x}', '{}', '../..', '__proto__', 'a:b/c%20*?'])(
    'like %j is fine',
    async (name) => {
      const { env, process } = world()
      const lease = await env.until(process().holdfast.mutex(name).acquire())
      expect(lease.name).toBe(name)
    },
  )

  it('is either refused with a typed error or locked under exactly that name', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 40 }), async (name) => {
        const { env, process, server } = world()
        const { holdfast } = process()
        const locking = Promise.resolve().then(() => holdfast.mutex(name).acquire())
        const outcome: unknown = await env
          .until(locking.then(() => 'locked'))
          .catch((error: unknown) => error)
        const page = await server.list({}, 100)
        const names = 'kind' in page ? page : page.names
        expect({ outcome, names }).toEqual(
          outcome instanceof InvalidArgumentError
            ? { outcome, names: [] }
            : { outcome: 'locked', names: [name] },
        )
      }),
    )
  })
})

const badTimes = [0, -1, 1.5, NaN, Infinity, 2 ** 31, '10', null, {}]

describe('a time', () => {
  it.each(badTimes)('of %j is no ttl', async (ttl) => {
    const { holdfast, store } = world().process()
    expect(() => holdfastWith({ ttl })).toThrow(InvalidArgumentError)
    expect(() => holdfast.mutex('a', { ttl } as LockOptions)).toThrow(InvalidArgumentError)
    await expect(holdfast.mutex('a').acquire({ ttl } as AcquireOptions)).rejects.toBeInstanceOf(
      InvalidArgumentError,
    )
    expect(store.count()).toBe(0)
  })

  it.each([-1, 1.5, NaN, 2 ** 31, '10', null])('of %j is no wait', async (wait) => {
    const { holdfast, store } = world().process()
    expect(() => holdfastWith({ wait })).toThrow(InvalidArgumentError)
    await expect(holdfast.mutex('a').acquire({ wait } as AcquireOptions)).rejects.toBeInstanceOf(
      InvalidArgumentError,
    )
    expect(store.count()).toBe(0)
  })

  it.each([0, -1, 1.5, NaN, 2 ** 31, '10'])('of %j is no maxHold', (maxHold) => {
    expect(() => holdfastWith({ maxHold })).toThrow(InvalidArgumentError)
  })

  it('must be one that the store can keep', () => {
    const { holdfast } = world({ minTtl: 2000, maxTtl: 60_000 }).process()
    expect(() => holdfast.mutex('a', { ttl: 1999 })).toThrow(/between 2000 and 60000/)
    expect(() => holdfast.mutex('a', { ttl: 60_001 })).toThrow(InvalidArgumentError)
    holdfast.mutex('a', { ttl: 2000 })
  })
})

describe('a number', () => {
  it.each([0, -1, 1.5, NaN, Infinity, 2 ** 31 - 1, '3'])('%j is no capacity', (capacity) => {
    const { holdfast } = world().process()
    expect(() => holdfast.semaphore('a', capacity as number)).toThrow(InvalidArgumentError)
  })

  it.each([0, -1, 4, 1.5, NaN])('%j is no number of permits out of 3', async (permits) => {
    const { holdfast, store } = world().process()
    await expect(holdfast.semaphore('a', 3).acquire({ permits })).rejects.toBeInstanceOf(InvalidArgumentError)
    expect(store.count()).toBe(0)
  })

  it.each([
    { fair: 'sometimes' },
    { renew: 1 },
    { patience: 0 },
    { requestTimeout: 0 },
    { turn: { count: 0 } },
  ])('or option like %j is refused', (options) => {
    expect(() => holdfastWith(options)).toThrow(InvalidArgumentError)
  })

  it('says which argument is wrong and what came instead', () => {
    const { holdfast } = world().process()
    const attempt = (): unknown => holdfast.mutex('a', { ttl: -5 })
    expect(attempt).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'ttl' }) as Error)
    expect(attempt).toThrow(/ttl must be between 3 and 2147483647 milliseconds; got -5/)
  })

  it('or signal that is none is refused', async () => {
    const { holdfast } = world().process()
    const signal = {} as AbortSignal
    await expect(holdfast.mutex('a').acquire({ signal })).rejects.toBeInstanceOf(InvalidArgumentError)
  })
})
