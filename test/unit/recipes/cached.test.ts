import { describe, expect, expectTypeOf, it } from 'vitest'

import { LockAbortedError, LockLostError, LockReentryError } from '../../../src/index.ts'
import { cached } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import { gate, SharedCache, SharedFencedCache } from './kit.ts'

const TTL = 60_000

describe('a cached load', () => {
  it('asks the database once for 4 processes with 50 requests each', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    let loads = 0
    const load = async (): Promise<string> => {
      loads++
      await env.sleep(200)
      return 'categories'
    }
    const gets = Array.from({ length: 4 }, () => {
      const { holdfast, store, env: own } = process()
      store.there = store.back = 1
      const categories = cached(holdfast, { cache, key: 'categories', load, ttl: TTL, env: own })
      return Array.from({ length: 50 }, () => categories.get())
    })
    const values = await env.until(Promise.all(gets.flat()))
    expect(new Set(values)).toEqual(new Set(['categories']))
    expect(values).toHaveLength(200)
    expect(loads).toBe(1)
  })

  it('lets those who wait be woken: they read the cache twice and claim once, however long the load takes', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const load = async (): Promise<number> => (await env.sleep(20_000), 1)
    const [one, other] = [process(), process()].map(({ holdfast, store, env: own }) => {
      store.there = store.back = 1
      return { get: () => cached(holdfast, { cache, key: 'k', load, ttl: TTL, env: own }).get(), store }
    })
    const first = one?.get()
    await env.advance(10)
    const second = other?.get()
    await env.advance(15_000)
    const readsWhileWaiting = cache.reads
    await env.until(Promise.all([first, second]))
    expect(readsWhileWaiting).toBe(3)
    expect(cache.reads).toBe(4)
    // One to see that it is busy before it listens, one to queue.
    expect(other?.store.count('claim')).toBeLessThanOrEqual(2)
  })

  it('tells everybody of this process who waits what the loader threw, keeps nothing, and lets the next process try', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const [here, there] = [process(), process()]
    const failing = cached(here.holdfast, {
      cache,
      key: 'k',
      load: async (): Promise<string> => {
        await env.sleep(100)
        throw new Error('the database is down')
      },
      ttl: TTL,
    })
    const fine = cached(there.holdfast, { cache, key: 'k', load: () => 'value', ttl: TTL })
    const here3 = Promise.allSettled([failing.get(), failing.get(), failing.get()])
    await env.advance(10)
    const elsewhere = fine.get()
    const outcomes = await env.until(here3)
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && String(outcome.reason))).toEqual(
      Array(3).fill('Error: the database is down'),
    )
    expect(cache.writes.filter(({ text }) => !text.includes('value'))).toEqual([])
    expect(await env.until(elsewhere)).toBe('value')
  })

  it('remembers for a shorter time that there is nothing, and which kind of nothing', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const loads: number[] = []
    const product = cached(holdfast, {
      cache: new Map<string, unknown>(),
      key: (id: number) => `product:${id}`,
      load: (id): string | null | undefined => (loads.push(id), id === 1 ? null : undefined),
      ttl: TTL,
      emptyTtl: 1000,
      jitter: 0,
      env,
    })
    for (let n = 0; n < 3; n++) {
      expect(await env.until(product.get(1))).toBe(null)
      expect(await env.until(product.get(2))).toBe(undefined)
    }
    expect(loads).toEqual([1, 2])
    await env.advance(1000)
    await env.until(product.get(1))
    expect(loads).toEqual([1, 2, 1])
  })

  it('takes up to a tenth off the ttl by chance, never adds', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const cache = new SharedCache(env)
    const each = cached(holdfast, { cache, key: (n: number) => `k${n}`, load: (n) => n, ttl: TTL, env })
    for (let n = 0; n < 50; n++) await env.until(each.get(n))
    const ttls = cache.writes.map(({ ttl }) => ttl)
    expect(Math.min(...ttls)).toBeGreaterThanOrEqual(TTL * 0.9)
    expect(Math.max(...ttls)).toBeLessThanOrEqual(TTL)
    expect(new Set(ttls).size).toBeGreaterThan(30)
  })

  it('gives the loading caller what the others will get: a value that went through the codec', async () => {
    const { env, process } = world()
    const day = new Date('2030-05-01')
    const { holdfast } = process()
    const plain = cached(holdfast, { cache: new Map(), key: 'a', load: () => ({ day }), ttl: TTL, env })
    expect(await env.until(plain.get())).toEqual({ day: day.toISOString() })
    const codec = {
      encode: ({ day: when }: { day: Date }) => String(when.getTime()),
      decode: (text: string) => ({ day: new Date(Number(text)) }),
    }
    const dated = cached(holdfast, {
      cache: new Map(),
      key: 'b',
      load: () => ({ day }),
      ttl: TTL,
      codec,
      env,
    })
    expect(await env.until(dated.get())).toEqual({ day })
    expect(await env.until(dated.get())).toEqual({ day })
  })

  it('loads over an entry that it cannot read', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    await cache.set('k', 'something else', TTL)
    await cache.set('l', 'v:{not json', TTL)
    const each = cached(process().holdfast, { cache, key: (k: string) => k, load: (k) => `${k}!`, ttl: TTL })
    expect(await env.until(each.get('k'))).toBe('k!')
    expect(await env.until(each.get('l'))).toBe('l!')
  })

  it('says so when a load asks for its own key, instead of waiting for itself', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const load = async (): Promise<string> => mine.get()
    const mine: { get(): Promise<string> } = cached(holdfast, {
      cache: new Map(),
      key: 'k',
      load,
      ttl: TTL,
      env,
    })
    await expect(env.until(mine.get())).rejects.toBeInstanceOf(LockReentryError)
  })

  it.each<[string, () => unknown, string]>([
    ['rejects', () => Promise.reject(new Error('full')), 'Error: full'],
    // Keyv, where somebody listens to its errors.
    ['says false', () => Promise.resolve(false), 'StoreUnavailableError: The cache has not kept'],
  ])('returns a value that the cache would not keep, and reports that: one that %s', async (_, set, told) => {
    const { env, process } = world()
    const errors: unknown[] = []
    const cache = { get: () => null, set, delete: () => {} }
    const k = cached(process().holdfast, {
      cache,
      key: 'k',
      load: () => 7,
      ttl: TTL,
      onError: (error, key) => errors.push([key, String(error)]),
    })
    expect(await env.until(k.get())).toBe(7)
    expect(errors).toEqual([['k', expect.stringContaining(told)]])
  })

  it('infers the type of the value and of what is asked for', () => {
    const { process } = world()
    const { holdfast } = process()
    const cache = new Map<string, unknown>()
    const one = cached(holdfast, { cache, key: 'k', load: () => Promise.resolve(['a']), ttl: 1 })
    expectTypeOf(() => one.get()).returns.resolves.toEqualTypeOf<string[]>()
    const many = cached(holdfast, {
      cache,
      key: (id: number) => `${id}`,
      load: (id, { signal }) => (signal.aborted ? null : { id }),
      ttl: 1,
    })
    expectTypeOf<Parameters<typeof many.get>[0]>().toEqualTypeOf<number>()
    expectTypeOf(() => many.get(1)).returns.resolves.toEqualTypeOf<{ id: number } | null>()
  })

  it.each([
    ['ttl', { ttl: 0 }],
    ['emptyTtl', { emptyTtl: -1 }],
    ['refreshAfter', { refreshAfter: TTL + 1 }],
    ['jitter', { jitter: 1 }],
    ['cache', { cache: {} as Map<string, unknown> }],
  ])('refuses a wrong %s', (argument, wrong) => {
    const { process } = world()
    const right = { cache: new Map<string, unknown>(), key: 'k', load: () => 1, ttl: TTL }
    expect(() => cached(process().holdfast, { ...right, ...wrong })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument }),
    )
  })
})

describe('an early refresh', () => {
  it('serves the old value at once while one process of all loads the new one', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    let loads = 0
    const load = async (): Promise<number> => (await env.sleep(500), ++loads)
    const fleet = Array.from({ length: 3 }, () => {
      const { holdfast, env: own } = process()
      return cached(holdfast, { cache, key: 'k', load, ttl: TTL, refreshAfter: 10_000, env: own })
    })
    const all = (): Promise<number[]> =>
      env.until(Promise.all(fleet.flatMap((each) => [each.get(), each.get()])))
    expect(await all()).toEqual(Array(6).fill(1))
    await env.advance(10_000)
    const asked = env.mono()
    expect(await all()).toEqual(Array(6).fill(1))
    expect(env.mono()).toBe(asked)
    await env.advance(500)
    expect(await all()).toEqual(Array(6).fill(2))
    await env.advance(5000)
    expect(loads).toBe(2)
  })

  it('that fails is reported, harms nobody, and is not tried again at once', async () => {
    const { env, process } = world()
    const errors: unknown[] = []
    let loads = 0
    const k = cached(process().holdfast, {
      cache: new SharedCache(env),
      key: 'k',
      load: () => {
        if (++loads > 1) throw new Error('down')
        return 'old'
      },
      ttl: TTL,
      refreshAfter: 1000,
      onError: (error) => errors.push(String(error)),
      env,
    })
    await env.until(k.get())
    await env.advance(1000)
    for (let n = 0; n < 10; n++) {
      expect(await env.until(k.get())).toBe('old')
      await env.advance(50)
    }
    expect(loads).toBe(2)
    await env.advance(1000)
    await env.until(k.get())
    await env.settle()
    expect(errors).toEqual(['Error: down', 'Error: down'])
  })
})

describe('a loader that loses its lease', () => {
  it('is told by its signal', async () => {
    const { env, process } = world()
    const { holdfast, store, env: own } = process({ ttl: 1000 })
    const seen = gate<unknown>()
    const k = cached(holdfast, {
      cache: new SharedCache(env),
      key: 'k',
      load: (_, { signal }) =>
        new Promise<string>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            seen.open(signal.reason)
            reject(signal.reason as Error)
          })
        }),
      ttl: TTL,
      env: own,
    })
    const get = k.get().catch((error: unknown) => error)
    await env.advance(10)
    store.lose('any', 'request', Infinity)
    expect(await env.until(seen.promise)).toBeInstanceOf(LockLostError)
    expect(await env.until(get)).toBeInstanceOf(LockLostError)
  })

  it('and was stopped meanwhile does not write, and gets what the later one wrote', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const [stopped, other] = [process({ ttl: 1000 }), process({ ttl: 1000 })]
    const make = ({ holdfast, env: own }: typeof stopped, value: string) =>
      cached(holdfast, {
        cache,
        key: 'k',
        load: async () => (await own.sleep(100), value),
        ttl: TTL,
        env: own,
      })
    const old = make(stopped, 'old').get()
    await env.advance(50)
    stopped.env.pause(10_000)
    expect(await env.until(make(other, 'new').get())).toBe('new')
    expect(await env.until(old)).toBe('new')
    expect(cache.writes.map(({ text }) => text)).toEqual(['v:"new"'])
  })

  it('cannot overwrite newer data with a write that was long under way, if the cache compares tokens', async () => {
    const { env, process } = world()
    const cache = new SharedFencedCache(env)
    cache.slowness = [5000]
    const [slow, other] = [process({ ttl: 1000 }), process({ ttl: 1000 })]
    const make = ({ holdfast, env: own }: typeof slow, value: string) =>
      cached(holdfast, { cache, key: 'k', load: () => value, ttl: TTL, env: own })
    const old = make(slow, 'old').get()
    await env.advance(50)
    slow.env.pause(3000)
    slow.store.lose('renew', 'request', Infinity)
    expect(await env.until(make(other, 'new').get())).toBe('new')
    expect(await env.until(old)).toBe('new')
    expect(cache.refused).toBe(1)
    expect(cache.writes.map(({ text }) => text)).toEqual(['v:"new"'])
  })

  it('because its process died is replaced when the lease has run out', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const [dead, other] = [process({ ttl: 1000 }), process({ ttl: 1000 })]
    const never = cached(dead.holdfast, {
      cache,
      key: 'k',
      load: () => new Promise<string>(() => {}),
      ttl: TTL,
    })
    never.get().catch(() => {})
    await env.advance(50)
    dead.env.pause(1e9)
    const k = cached(other.holdfast, { cache, key: 'k', load: () => 'value', ttl: TTL })
    expect(await env.until(k.get(), 5000)).toBe('value')
  })
})

describe('a caller that gives up', () => {
  it('leaves the load to the others', async () => {
    const { env, process } = world()
    const k = cached(process().holdfast, {
      cache: new SharedCache(env),
      key: 'k',
      load: async (_, { signal }) => (await env.sleep(100), signal.aborted),
      ttl: TTL,
    })
    const patient = k.get()
    const controller = new AbortController()
    const hasty = k.get(undefined, { signal: controller.signal }).catch((error: unknown) => error)
    await env.advance(50)
    controller.abort('enough')
    const error = await env.until(hasty)
    expect(error).toBeInstanceOf(LockAbortedError)
    expect(error).toMatchObject({ cause: 'enough' })
    expect(await env.until(patient)).toBe(false)
  })

  it('as the last one ends the load and frees the lock; who asks then starts anew', async () => {
    const w = world()
    const { env } = w
    let loads = 0
    const k = cached(w.process().holdfast, {
      cache: new SharedCache(env),
      key: 'k',
      load: (_, { signal }) => {
        if (++loads > 1) return 'second'
        return new Promise<string>((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        )
      },
      ttl: TTL,
    })
    const controller = new AbortController()
    const { signal } = controller
    const both = Promise.allSettled([k.get(undefined, { signal }), k.get(undefined, { signal })])
    await env.advance(50)
    controller.abort()
    const next = k.get()
    expect((await env.until(both)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await env.until(next)).toBe('second')
    await env.advance(10)
    expect(await isClean(w, 'cache:k')).toBe(true)
  })

  it('before it asked is told at once', async () => {
    const { env, process } = world()
    const k = cached(process().holdfast, { cache: new SharedCache(env), key: 'k', load: () => 1, ttl: TTL })
    await expect(k.get(undefined, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(LockAbortedError)
  })
})

it('keeps a value in a Map for its ttl, and a second more where the machine sleeps', async () => {
  const { env, process } = world()
  const { holdfast, env: own } = process()
  let loads = 0
  const options = { cache: new Map(), key: 'k', load: () => ++loads, ttl: TTL, jitter: 0, env: own }
  const value = cached(holdfast, options)
  expect(await env.until(value.get())).toBe(1)
  env.jump({ boot: TTL, wall: TTL })
  await env.advance(999)
  expect(await env.until(value.get())).toBe(1)
  await env.advance(1)
  expect(await env.until(value.get())).toBe(2)
  env.jump({ boot: 2 * TTL, wall: -2 * TTL })
  expect(await env.until(value.get())).toBe(3)
  // Whatever is done to the wall clock.
  for (const loaded of [3, 4]) {
    env.jump({ wall: loaded === 3 ? 10 * TTL : -10 * TTL })
    await env.advance(TTL - 1)
    expect(await env.until(value.get())).toBe(loaded)
    await env.advance(1)
    expect(await env.until(value.get())).toBe(loaded + 1)
  }
})

it('keeps a value no longer where another cache of the same Map was made after the machine slept', async () => {
  const { env, process } = world()
  const { holdfast, env: own } = process()
  let loads = 0
  const options = { cache: new Map(), key: 'k', load: () => ++loads, ttl: TTL, jitter: 0, env: own }
  const before = cached(holdfast, options)
  expect(await env.until(before.get())).toBe(1)
  env.jump({ boot: 100 * TTL, wall: 100 * TTL })
  const after = cached(holdfast, options)
  const values = async (): Promise<number[]> => [
    await env.until(before.get()),
    await env.until(after.get()),
    await env.until(before.get()),
  ]
  expect(await values()).toEqual([2, 2, 2])
  await env.advance(TTL)
  expect(await env.until(after.get())).toBe(3)
  expect(await values()).toEqual([3, 3, 3])
})

describe('forgetting a key', () => {
  it('of a Map loads it anew', async () => {
    const { env, process } = world()
    const { holdfast, env: own } = process()
    let loads = 0
    const each = cached(holdfast, {
      cache: new Map(),
      key: (id: string) => id,
      load: () => ++loads,
      ttl: TTL,
      env: own,
    })
    expect([await env.until(each.get('a')), await env.until(each.get('b'))]).toEqual([1, 2])
    await env.until(each.forget('a'))
    expect([await env.until(each.get('a')), await env.until(each.get('b'))]).toEqual([3, 2])
  })

  it.each([
    ['a plain cache', SharedCache],
    ['a fenced cache', SharedFencedCache],
  ])(
    'waits for the load that is under way, so that it cannot put back what it read before: %s',
    async (_, Kind) => {
      const { env, process } = world()
      const cache = new Kind(env)
      const errors: unknown[] = []
      let database = 'old'
      const [one, other] = [process(), process()].map(({ holdfast, env: own }) =>
        cached(holdfast, {
          cache,
          key: 'k',
          load: async () => {
            const read = database
            await env.sleep(100)
            return read
          },
          ttl: TTL,
          onError: (error) => errors.push(error),
          env: own,
        }),
      )
      const first = one?.get()
      await env.advance(50)
      database = 'new'
      await env.until(Promise.resolve(other?.forget()))
      expect(await env.until(Promise.all([one?.get(), other?.get()]))).toEqual(['new', 'new'])
      expect(await env.until(Promise.resolve(first))).toBe('old')
      expect(errors).toEqual([])
    },
  )

  it('keeps who asks after it from a load that began before and has lost its lock', async () => {
    const { env, process } = world()
    const cache = new SharedFencedCache(env)
    const late = gate()
    let database = 'old'
    let loads = 0
    const load = async (): Promise<string> => {
      const read = database
      if (++loads === 1) await late.promise
      return read
    }
    const [here, there] = [process(), process()]
    const [one, other] = [here, there].map(({ holdfast, env: own }) =>
      cached(holdfast, { cache, key: 'k', load, ttl: TTL, lock: { ttl: 3000 }, env: own }),
    )
    const before = one?.get()
    await env.advance(10)
    here.store.lose('any', 'request', 1000)
    await env.advance(4000)
    here.store.heal()
    database = 'new'
    await env.until(Promise.resolve(other?.forget()))
    expect(await env.until(Promise.resolve(one?.get()))).toBe('new')
    late.open()
    // Who was refused gets the newer value.
    expect(await env.until(Promise.resolve(before))).toBe('new')
    expect(loads).toBe(2)
  })
})
