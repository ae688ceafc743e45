import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { Holdfast, LockReentryError } from '../../../src/index.ts'
import { cached } from '../../../src/recipes/index.ts'
import type { Cached } from '../../../src/recipes/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { World } from '../runtime/far-store.ts'
import { gate } from './kit.ts'

const TTL = 60_000

/** Each key's load asks for others, some milliseconds after it began, or has one forgotten: `-a`. */
function linked(w: World, asks: Readonly<Record<string, readonly string[]>>): Cached<string, string> {
  const { holdfast, env } = w.process()
  const load = async (id: string): Promise<string> => {
    await env.sleep(10)
    const ask = (each: string): Promise<unknown> =>
      each.startsWith('-') ? all.forget(each.slice(1)) : all.get(each)
    const parts = await Promise.all((asks[id] ?? []).map(ask))
    return `${id}(${parts.join()})`
  }
  const all: Cached<string, string> = cached(holdfast, {
    cache: new Map(),
    key: (id) => id,
    load,
    ttl: TTL,
    env,
  })
  return all
}

const outcomes = (w: World, all: Cached<string, string>, keys: readonly string[]) =>
  w.env.until(Promise.allSettled(keys.map((key) => all.get(key))), 5000)

const loop = { status: 'rejected', reason: expect.any(LockReentryError) as unknown }

describe('loads that ask for each other', () => {
  it.each<[string, Record<string, string[]>]>([
    ['two', { a: ['b'], b: ['a'] }],
    ['three', { a: ['b'], b: ['c'], c: ['a'] }],
    ['five', { a: ['b'], b: ['c'], c: ['d'], d: ['e'], e: ['a'] }],
  ])('%s at the same moment: all hear of it, and nothing stays locked', async (_, asks) => {
    const w = world()
    const all = linked(w, asks)
    const keys = Object.keys(asks)
    expect(await outcomes(w, all, keys)).toEqual(keys.map(() => loop))
    await w.env.advance(100)
    for (const key of keys) expect(await isClean(w, `cache:${key}`)).toBe(true)
  })

  it.each<[string, Record<string, string[]>]>([
    ['the first', { a: ['-b'], b: ['a'] }],
    ['the second', { a: ['b'], b: ['-a'] }],
    ['both', { a: ['-b'], b: ['-a'] }],
    ['one of three', { a: ['b'], b: ['-c'], c: ['a'] }],
  ])('hear of it at once also where %s would have the other forgotten', async (_, asks) => {
    const w = world()
    const keys = Object.keys(asks)
    // Within 5 s: the lock's wait is longer.
    expect(await outcomes(w, linked(w, asks), keys)).toContainEqual(loop)
    await w.env.advance(100)
    for (const key of keys) expect(await isClean(w, `cache:${key}`)).toBe(true)
  })

  it('are let through when they only need the same one', async () => {
    const w = world()
    const all = linked(w, { a: ['c', 'c'], b: ['c'], c: [] })
    expect(await outcomes(w, all, ['a', 'b'])).toMatchObject([{ value: 'a(c(),c())' }, { value: 'b(c())' }])
  })

  it('always end, and fail only where there is a loop', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e']
    const some = fc.uniqueArray(fc.constantFrom(...keys), { maxLength: 2 })
    const graphs = fc.record(Object.fromEntries(keys.map((key) => [key, some])))
    const check = async (asks: Record<string, string[]>): Promise<void> => {
      const w = world()
      const found = await outcomes(w, linked(w, asks), keys)
      const meetsLoop = (key: string, path: readonly string[]): boolean =>
        path.includes(key) || (asks[key] ?? []).some((next) => meetsLoop(next, [...path, key]))
      expect(found.map(({ status }) => status)).toEqual(
        keys.map((key) => (meetsLoop(key, []) ? 'rejected' : 'fulfilled')),
      )
    }
    await fc.assert(fc.asyncProperty(graphs, check), { numRuns: 60 })
  })

  it('always end, also those that have others forgotten, and none fails where there is no loop', async () => {
    const keys = ['a', 'b', 'c', 'd']
    const some = fc.uniqueArray(fc.constantFrom(...keys, ...keys.map((key) => `-${key}`)), { maxLength: 2 })
    const graphs = fc.record(Object.fromEntries(keys.map((key) => [key, some])))
    const check = async (asks: Record<string, string[]>): Promise<void> => {
      const w = world()
      const found = await outcomes(w, linked(w, asks), keys)
      const meetsLoop = (key: string, path: readonly string[]): boolean =>
        path.includes(key) ||
        (asks[key] ?? []).some((next) => meetsLoop(next.replace('-', ''), [...path, key]))
      for (const [index, key] of keys.entries())
        expect(found[index]).toMatchObject(meetsLoop(key, []) ? {} : { status: 'fulfilled' })
    }
    await fc.assert(fc.asyncProperty(graphs, check), { numRuns: 100 })
  })
})

describe('a near cache in front of a far one', () => {
  function pair(near: string) {
    const w = world()
    const { holdfast, env } = w.process()
    const far = cached(holdfast, {
      cache: new Map(),
      key: (id: number) => `p:${id}`,
      load: async (id) => (await env.sleep(10), id),
      ttl: TTL,
      env,
    })
    const front = cached(holdfast, {
      cache: new Map(),
      key: (id: number) => `${near}p:${id}`,
      load: async (id) => (await env.sleep(10), far.get(id)),
      ttl: 1000,
      env,
    })
    return { w, far, front }
  }

  it('with the same key says at once what to do', async () => {
    const { w, front } = pair('')
    await expect(w.env.until(front.get(17), 100)).rejects.toMatchObject({
      code: 'LOCK_REENTRY',
      message: expect.stringContaining('near:') as string,
    })
  })

  it('says so too when the far one stands in line for the lock already', async () => {
    const { w, far, front } = pair('')
    const first = front.get(17)
    await w.env.advance(1)
    const second = far.get(17)
    await expect(w.env.until(first, 100)).rejects.toMatchObject({ code: 'LOCK_REENTRY' })
    expect(await w.env.until(second, 100)).toBe(17)
  })

  it('waits for another load of the far one, which has nothing to do with it', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const twin = (): Cached<number, number> =>
      cached(holdfast, {
        cache: new Map(),
        key: (id) => `t:${id}`,
        load: async (id) => (await env.sleep(50), id),
        ttl: TTL,
        env,
      })
    const [one, other] = [twin(), twin()]
    const front = cached(holdfast, {
      cache: new Map(),
      key: 'front',
      load: async () => (await env.sleep(10), other.get(17)),
      ttl: TTL,
      env,
    })
    // The lock of what it asks for is held by the load of another cache of this process.
    const both = [one.get(17), front.get()]
    expect(await w.env.until(Promise.all(both), 1000)).toEqual([17, 17])
  })

  it('with another key loads', async () => {
    const { w, front } = pair('near:')
    expect(await w.env.until(front.get(17), 100)).toBe(17)
  })
})

it('a load that forgets its own key hears that it would wait for itself', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const each: Cached<number> = cached(holdfast, {
    cache: new Map(),
    key: 'k',
    load: async () => (await each.forget(), 1),
    ttl: TTL,
    env,
  })
  await expect(w.env.until(each.get(), 100)).rejects.toBeInstanceOf(LockReentryError)
})

it('what a load has started may ask for its key when the load is over', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  let later: Promise<void> = Promise.resolve()
  let loads = 0
  const each: Cached<number> = cached(holdfast, {
    cache: new Map(),
    key: 'k',
    load: () => {
      later = env.sleep(100).then(() => each.forget())
      return ++loads
    },
    ttl: TTL,
    env,
  })
  expect(await w.env.until(each.get())).toBe(1)
  await w.env.until(later)
  expect(await w.env.until(each.get())).toBe(2)
})

it('a refresh in the background may ask for what its caller is loading', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const errors: unknown[] = []
  const parts: Cached<string> = cached(holdfast, {
    cache: new Map(),
    key: 'part',
    load: async () => (await env.sleep(10), env.mono() < 500 ? 'old' : `new of ${await whole.get()}`),
    ttl: TTL,
    refreshAfter: 100,
    onError: (error) => errors.push(error),
    env,
  })
  const whole: Cached<string> = cached(holdfast, {
    cache: new Map(),
    key: 'whole',
    load: async () => `whole of ${await parts.get()}`,
    ttl: TTL,
    env,
  })
  await w.env.until(parts.get())
  await w.env.advance(1000)
  expect(await w.env.until(whole.get())).toBe('whole of old')
  await w.env.advance(100)
  expect(await w.env.until(parts.get())).toBe('new of whole of old')
  expect(errors).toEqual([])
})

it('a load that starts the next one and does not wait leaves no chain of them behind', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Real timers: those of the virtual clock do not remember who set them.
  const holdfast = new Holdfast(memoryStore())
  const values: WeakRef<object>[] = []
  const last = gate()
  const end = gate()
  const page: Cached<object, number> = cached(holdfast, {
    cache: { get: () => undefined, set: () => {}, delete: () => {} },
    key: (n) => `page:${n}`,
    codec: {
      encode: () => '',
      decode: () => {
        const value = {}
        values.push(new WeakRef(value))
        return value
      },
    },
    load: async (n) => {
      if (n < 50) setImmediate(() => void page.get(n + 1).catch(last.fail))
      else await (last.open(), end.promise)
      return {}
    },
    ttl: TTL,
  })
  void page.get(0).catch(last.fail)
  await last.promise
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  expect(values).toHaveLength(50)
  expect(values.filter((each) => each.deref() !== undefined).length).toBeLessThan(10)
  end.open()
  await holdfast.close()
})

it('a caller inside of nothing does not hear that the section of another one holds what the load needs', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const db = holdfast.mutex('db')
  const load = async (): Promise<string> => (await env.sleep(50), db.run(() => 'value'))
  const each = cached(holdfast, { cache: new Map(), key: 'k', load, ttl: TTL, env })
  const within = db.run(() => each.get())
  within.catch(() => {})
  await w.env.advance(10)
  const [a, b] = await w.env.until(Promise.allSettled([within, each.get()]), 1000)
  expect(a).toMatchObject({ reason: { code: 'LOCK_REENTRY' } })
  expect(b).toMatchObject({ value: 'value' })
})

it('nor does one that came after a caller in another such section', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const db = holdfast.readWriteLock('db')
  const load = async (): Promise<string> => (await env.sleep(50), db.write.run(() => 'value'))
  const each = cached(holdfast, { cache: new Map(), key: 'k', load, ttl: TTL, env })
  const callers: Promise<string>[] = []
  for (const within of [true, true, false]) {
    callers.push(within ? db.read.run(() => each.get()) : each.get())
    await w.env.advance(10)
  }
  const [a, b, c] = await w.env.until(Promise.allSettled(callers), 1000)
  for (const reader of [a, b]) expect(reader).toMatchObject({ reason: { code: 'LOCK_REENTRY' } })
  expect(c).toMatchObject({ value: 'value' })
})

it('a caller who holds the key’s own lock hears so at once, also while others have begun to wait for it', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const each = cached(holdfast, { cache: new Map(), key: 'k', load: async () => 'value', ttl: TTL, env })
  const others: Promise<string>[] = []
  const inside = holdfast.mutex('cache:k').run(async () => {
    others.push(holdfast.outside(() => each.get()))
    await env.sleep(100)
    return each.get().catch((error: unknown) => error)
  })
  expect(await w.env.until(inside, 1000)).toBeInstanceOf(LockReentryError)
  expect(await w.env.until(Promise.all(others), 1000)).toEqual(['value'])
})

it('work that a load starts and does not wait for may wait for it, outside of it', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const work: Promise<unknown>[] = []
  let loads = 0
  const each: Cached<void, void> = cached(holdfast, {
    cache: new Map(),
    key: 'k',
    load: async () => {
      if (++loads === 1) work.push(holdfast.outside(() => each.get().then(() => each.forget())))
      await env.sleep(10)
    },
    ttl: TTL,
    env,
  })
  await w.env.until(each.get(), 1000)
  await w.env.until(Promise.all(work), 1000)
  expect(loads).toBe(1)
})
