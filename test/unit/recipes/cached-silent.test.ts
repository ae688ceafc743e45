import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'

import { StoreUnavailableError } from '../../../src/index.ts'
import { cached } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'

const TTL = 60_000
const never = new Promise<never>(() => {})

describe('a cache that does not answer', () => {
  it('does not keep a caller that has given up', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const cache = { get: () => never, set: () => {}, delete: () => {} }
    const each = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: TTL, env })
    const giveUp = new AbortController()
    const got = each.get(undefined, { signal: giveUp.signal })
    got.catch(() => {})
    await w.env.advance(200)
    giveUp.abort()
    await expect(w.env.until(got, 1)).rejects.toMatchObject({ code: 'LOCK_ABORTED' })
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([])
  })

  it('rejects a read after ten seconds', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const cache = { get: () => never, set: () => {}, delete: () => {} }
    const each = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: TTL, env })
    await expect(w.env.until(each.get(), 10_001)).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  it('rejects one under the lock too, and gives the lock back', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    let reads = 0
    const cache = { get: () => (reads++ === 0 ? null : never), set: () => {}, delete: () => {} }
    const each = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: TTL, env })
    await expect(w.env.until(each.get(), 10_001)).rejects.toBeInstanceOf(StoreUnavailableError)
    await w.env.advance(100)
    expect(await isClean(w, 'cache:k')).toBe(true)
  })

  it.each(['set', 'setFenced'])('keeps the lock for ten seconds at most: %s', async (method) => {
    const w = world()
    const { holdfast, env } = w.process()
    const errors: unknown[] = []
    const cache = { get: () => undefined, set: () => {}, delete: () => {}, [method]: () => never }
    const onError = (error: unknown): void => void errors.push(error)
    const each = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: TTL, onError, env })
    expect(await w.env.until(each.get(), 10_100)).toBe(1)
    expect(errors).toEqual([expect.any(StoreUnavailableError)])
    await w.env.advance(100)
    expect(await isClean(w, 'cache:k')).toBe(true)
  })

  it('fails a forget, which gives the lock back', async () => {
    const w = world()
    const { holdfast, env } = w.process()
    const cache = { get: () => undefined, set: () => {}, delete: () => never }
    const each = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: TTL, env })
    await expect(w.env.until(each.forget(), 10_100)).rejects.toBeInstanceOf(StoreUnavailableError)
    await w.env.advance(100)
    expect(await isClean(w, 'cache:k')).toBe(true)
  })
})

it("a load's signal is tied to no other one when the load is over", async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const giveUp = new AbortController()
  let seen: AbortSignal | undefined
  const each = cached(holdfast, {
    cache: new Map(),
    key: 'k',
    load: (_: void, context) => {
      seen = context.signal
      seen.addEventListener('abort', () => {})
      return JSON.stringify(context)
    },
    ttl: TTL,
    env,
  })
  expect(await w.env.until(each.get(undefined, { signal: giveUp.signal }))).toMatch(/"token":"\d+"/)
  // `AbortSignal.any` marks what it makes, and Node 20 keeps it once it has a listener.
  expect(Object.getOwnPropertySymbols(seen).filter((symbol) => seen && isSources(seen, symbol))).toEqual([])
})

function isSources(signal: AbortSignal, symbol: symbol): boolean {
  const composed = /composite|sourceSignals/i.test(String(symbol.description))
  return composed && Boolean((signal as unknown as Record<symbol, unknown>)[symbol])
}

it('an onError that rejects later harms nobody', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const unheard: unknown[] = []
  const hear = (error: unknown): void => void unheard.push(error)
  process.on('unhandledRejection', hear)
  const each = cached(holdfast, {
    cache: { get: () => null, set: () => Promise.reject(new Error('full')), delete: () => {} },
    key: 'k',
    load: () => 7,
    ttl: TTL,
    onError: () => Promise.reject(new Error('the log is down')),
    env,
  })
  expect(await w.env.until(each.get())).toBe(7)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', hear)
  expect(unheard).toEqual([])
})
