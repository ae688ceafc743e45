import { describe, expect, it } from 'vitest'

import { cached } from '../../../src/recipes/index.ts'
import type { Cached, CachedOptions } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import { SharedCache } from './kit.ts'

const TTL = 60_000

describe('a value that cannot be read back', () => {
  const broken = {
    encode: (value: string) => `<${value}`,
    decode: (text: string): string => {
      throw new Error(`cannot read ${text}`)
    },
  }

  it('is given to its caller, told to onError, and kept out of the cache', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const heard: string[] = []
    const onError = (error: unknown, key: string): void => void heard.push(`${key}: ${String(error)}`)
    const { holdfast } = process()
    const each = cached(holdfast, { cache, key: 'k', load: () => 'v', ttl: TTL, codec: broken, onError, env })
    expect(await env.until(each.get())).toBe('v')
    expect(heard).toEqual(['k: Error: cannot read <v'])
    expect(cache.writes).toEqual([])
  })

  it('is so too when it cannot even be written down', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    const errors: unknown[] = []
    const { holdfast } = process()
    const onError = (error: unknown): void => void errors.push(error)
    const each = cached(holdfast, { cache, key: 'k', load: () => ({ n: 1n }), ttl: TTL, onError, env })
    expect(await env.until(each.get())).toEqual({ n: 1n })
    expect(errors).toEqual([expect.any(TypeError)])
    expect(cache.writes).toEqual([])
  })

  it('and that a codec makes no text of is told to onError, with its type', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    const lenient = { encode: () => 17 as never, decode: () => 'decoded' }
    const cache = new Map<string, unknown>()
    const each = cached(holdfast, {
      cache,
      key: 'k',
      load: () => 'v',
      ttl: TTL,
      codec: lenient,
      onError,
      env,
    })
    expect(await w.env.until(each.get())).toBe('v')
    expect(String(errors[0])).toContain('made no text of a string')
    expect(cache.size).toBe(0)
  })

  it('and stands in the cache from before is told to onError, and loaded over', async () => {
    const { env, process } = world()
    const cache = new SharedCache(env)
    await cache.set('k', 'v:{"half', TTL)
    const errors: unknown[] = []
    const { holdfast } = process()
    const onError = (error: unknown): void => void errors.push(error)
    const each = cached(holdfast, { cache, key: 'k', load: () => 'whole', ttl: TTL, onError, env })
    expect(await env.until(each.get())).toBe('whole')
    expect(errors.length).toBeGreaterThan(0)
    expect(errors[0]).toBeInstanceOf(SyntaxError)
    errors.length = 0
    expect(await env.until(each.get())).toBe('whole')
    expect(errors).toEqual([])
  })
})

describe('a key', () => {
  it.each([
    ['of 2,000 letters', 'x'.repeat(2000)],
    ['of 200 characters of three bytes', '\u20ac'.repeat(200)],
    ['with line breaks', 'SELECT 1\nFROM t'],
    ['with half a surrogate pair', 'a\ud800'],
    ['of nothing', ''],
  ])('%s has a lock of its own: one load, and nothing left', async (_, key) => {
    const w = world()
    const cache = new SharedCache(w.env)
    let loads = 0
    const gets = [w.process(), w.process()].map(({ holdfast, env }) => {
      const load = async (): Promise<string> => (loads++, await env.sleep(50), 'v')
      return cached(holdfast, { cache, key: () => key, load, ttl: TTL, env }).get()
    })
    expect(await w.env.until(Promise.all(gets))).toEqual(['v', 'v'])
    expect(loads).toBe(1)
    // The cache gets the key as it is: whoever else reads it there finds it.
    expect(cache.writes.map((write) => write.key)).toEqual([key])
    const page = await w.server.list({}, 1000)
    expect(page).toMatchObject({ names: [] })
    expect(await isClean(w, `cache:${key}`.slice(0, 100))).toBe(true)
  })

  it('that is long differs from another one that begins alike', async () => {
    const w = world()
    const cache = new SharedCache(w.env)
    const { holdfast, env } = w.process()
    const key = (n: number): string => 'x'.repeat(600) + String(n)
    let most = 0
    let now = 0
    const load = async (n: number): Promise<number> => {
      most = Math.max(most, ++now)
      await env.sleep(100)
      now--
      return n
    }
    const each = cached(holdfast, { cache, key, load, ttl: TTL, env })
    expect(await w.env.until(Promise.all([each.get(1), each.get(2)]))).toEqual([1, 2])
    expect(most).toBe(2)
  })

  type Query = { readonly user: string }

  it.each<[string, (query: Query) => unknown]>([
    ['an object', (query) => query],
    ['the text that every object has', (query) => `user:${query as unknown as string}`],
    ['the text of a promise', (query) => `user:${Promise.resolve(query.user) as unknown as string}`],
    ['the text of a map', (query) => `user:${new Map([['user', query.user]]) as unknown as string}`],
    ['the text of a request', () => `user:${new Request('http://localhost') as unknown as string}`],
    ['a number', () => 17],
    ['undefined', () => undefined],
    ['a promise', (query) => Promise.resolve(query.user)],
  ])('that is %s is refused before anything is touched', async (_, key) => {
    const w = world()
    const { holdfast, store, env } = w.process()
    const cache = new SharedCache(w.env)
    const each = cached(holdfast, {
      cache,
      key: key as () => string,
      load: (query: Query) => query.user,
      ttl: TTL,
      env,
    })
    for (const call of [() => each.get({ user: 'a' }), () => each.forget({ user: 'a' })]) {
      await expect(w.env.until<unknown>(call())).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'key',
      })
    }
    expect(cache.reads + store.count()).toBe(0)
  })

  it('that is one text for all inputs serves nobody what was loaded for another', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const each: Cached<string, string> = cached(holdfast, {
      cache: new Map(),
      key: 'user',
      load: (user: string) => user,
      ttl: TTL,
      env,
    })
    await expect(w.env.until(each.get('ann'))).rejects.toMatchObject({
      argument: 'key',
      message: expect.stringContaining('function') as string,
    })
  })
})

describe('options that cannot work', () => {
  it.each<[string, Partial<CachedOptions<string>>, string]>([
    ['a refresh after the end', { refreshAfter: TTL }, 'refreshAfter'],
    ['a refresh that chance may put after the end', { refreshAfter: TTL * 0.9 }, 'refreshAfter'],
    ['a refresh after the end without jitter', { refreshAfter: TTL, jitter: 0 }, 'refreshAfter'],
    ['a codec that cannot decode', { codec: { encode: String } as never }, 'codec'],
    ['no loader', { load: undefined as never }, 'load'],
    ['no key', { key: undefined as never }, 'key'],
    ['no cache', { cache: undefined as never }, 'cache'],
    ['no options', undefined as never, 'options'],
  ])('%s: refused', (_, wrong, argument) => {
    const { holdfast } = world().process()
    const good = { cache: new Map(), key: 'k', load: () => 'v', ttl: TTL }
    expect(() => cached(holdfast, wrong === undefined ? wrong : { ...good, ...wrong })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument }),
    )
  })

  it('do not include a refresh just before the earliest end', () => {
    const { holdfast } = world().process()
    const good = { cache: new Map(), key: 'k', load: () => 'v', ttl: TTL }
    expect(() => cached(holdfast, { ...good, refreshAfter: TTL * 0.9 - 1 })).not.toThrow()
    expect(() => cached(holdfast, { ...good, refreshAfter: TTL - 1, jitter: 0 })).not.toThrow()
  })
})
