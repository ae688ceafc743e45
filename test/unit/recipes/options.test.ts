import { describe, expect, it } from 'vitest'

import {
  cached,
  leader,
  leaderOf,
  once,
  redisCache,
  stripedStock,
  watchLeader,
} from '../../../src/recipes/index.ts'
import type { CachedOptions, LeaderOptions, OnceOptions, StockOptions } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import { HOUR } from './fleet.ts'
import { Shelf } from './shelf.ts'

/** Every call of a recipe that takes options, with a key more. */
const calls: Record<string, (more: object) => unknown> = {
  cached: (more) => cached(world().process().holdfast, { ...load, ...more }),
  'cached.get': (more) => cached(world().process().holdfast, load).get(undefined, more),
  'cached.forget': (more) => cached(world().process().holdfast, load).forget(undefined, more),
  leader: (more) => leader(world().process().holdfast, 'boss', { onElected: () => {}, ...more }),
  'leader.health': (more) => {
    const w = world()
    const { holdfast, env } = w.process()
    return leader(holdfast, 'boss', { onElected: () => {}, env }).health(more)
  },
  watchLeader: (more) => watchLeader(world().process().holdfast, 'boss', more).next(),
  once: (more) => once(world().process().holdfast, 'report', { every: HOUR, run: () => 1, ...more }),
  redisCache: (more) => redisCache({ get: () => null } as never, more),
  stripedStock: (more) => stock(more),
  'stock.take': (more) => stock().take(1, more),
  'stock.put': (more) => stock().put(1, more),
  'stock.total': (more) => stock().total(more),
  'stock.fill': (more) => stock().fill(1, more),
}

const load = { cache: new Map<string, unknown>(), key: 'k', load: () => 'v', ttl: 60_000 }

function stock(more: object = {}) {
  const w = world()
  const storage = new Shelf(w.env, [1, 1])
  return stripedStock(w.process().holdfast, 'tickets', { segments: 2, storage, ...more })
}

describe('an option that is none', () => {
  it.each(Object.entries(calls))('%s: is refused', async (_, call) => {
    await expect((async () => call({ singal: 1 }))()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'singal',
    })
  })

  it.each([undefined, null, 60_000])('and none at all (%s): what has to be given is said', (options) => {
    expect(() => cached(world().process().holdfast, options as never)).toThrow(
      'must be given: cached(holdfast, { cache, key, load, ttl })',
    )
  })

  it('is told what was most likely meant', () => {
    const given = { ...load, refreshafter: 1 }
    expect(() => cached(world().process().holdfast, given)).toThrow('Did you mean "refreshAfter"?')
  })
})

describe('a value that means nothing', () => {
  const holdfast = () => world().process().holdfast
  const elected = { onElected: () => {} }
  const job = { every: HOUR, run: () => 1 }
  const shelves = () => ({ segments: 1, storage: new Shelf(world().env, [1]) })
  it.each<[string, string, () => unknown]>([
    ['jitter', 'a text', () => cached(holdfast(), { ...load, jitter: '0.5' as never })],
    ['signal', 'a text', () => cached(holdfast(), load).get(undefined, { signal: 'x' as never })],
    ['signal', 'to forget', () => cached(holdfast(), load).forget(undefined, { signal: 'x' as never })],
    ['signal', 'to watch', () => watchLeader(holdfast(), 'boss', { signal: 'x' as never }).next()],
    ['signal', 'to take', () => stock().take(1, { signal: false as never })],
    ['signal', 'to put', () => stock().put(1, { signal: 'x' as never })],
    ['signal', 'to fill', () => stock().fill(1, { signal: 'x' as never })],
    ['signal', 'for a total', () => stock().total({ signal: 'x' as never })],
    ['name', 'of no stock', () => stripedStock(holdfast(), undefined as never, shelves())],
    ['name', 'of a stock, an object', () => stripedStock(holdfast(), {} as never, shelves())],
    ['name', 'of a job, a symbol', () => once(holdfast(), Symbol('x') as never, job)],
    ['codec', 'null', () => cached(holdfast(), { ...load, codec: null as never })],
    ['wiat', 'in the lock', () => cached(holdfast(), { ...load, lock: { wiat: 5 } as never })],
    ['onError', 'of a cache', () => cached(holdfast(), { ...load, onError: 'log' as never })],
    ['onError', 'of a leader', () => leader(holdfast(), 'boss', { ...elected, onError: 'log' as never })],
    ['env', 'of a cache', () => cached(holdfast(), { ...load, env: {} as never })],
    ['env', 'of a cache, null', () => cached(holdfast(), { ...load, env: null as never })],
    ['env', 'of a leader, null', () => leader(holdfast(), 'boss', { ...elected, env: null as never })],
    ['env', 'of a stock, null', () => stripedStock(holdfast(), 'x', { ...shelves(), env: null as never })],
    ['env', 'of a leader', () => leader(holdfast(), 'boss', { ...elected, env: {} as never })],
    ['env', 'of a watch', () => watchLeader(holdfast(), 'boss', { env: {} as never }).next()],
    ['env', 'of a job', () => once(holdfast(), 'report', { ...job, env: {} as never })],
    ['env', 'of a stock', () => stripedStock(holdfast(), 'x', { ...shelves(), env: {} as never })],
    ['client', 'none', () => redisCache(undefined as never)],
    ['client', 'a URL', () => redisCache('redis://:pw@h' as never)],
    ['prefix', 'null', () => redisCache({ get: () => null } as never, { prefix: null as never })],
    ['holdfast', 'leaderOf', () => leaderOf(undefined as never, 'boss')],
    ['holdfast', 'cached', () => cached({} as never, load)],
    ['holdfast', 'leader', () => leader(undefined as never, 'boss', { onElected: () => {} })],
    ['holdfast', 'once', () => once(null as never, 'report', { every: HOUR, run: () => 1 })],
    ['holdfast', 'watchLeader', () => watchLeader({} as never, 'boss').next()],
    [
      'holdfast',
      'stock',
      () => stripedStock({} as never, 'x', { segments: 1, storage: new Shelf(world().env, [1]) }),
    ],
  ])('%s: %s is refused', async (argument, _, call) => {
    await expect((async () => call())()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument })
  })
})

it('a signal that is none keeps nobody waiting where all is sold out', async () => {
  const { holdfast } = world().process()
  const tickets = stripedStock(holdfast, 'tickets', {
    segments: 1,
    storage: { read: () => 0, write: () => true },
  })
  await expect(tickets.take()).resolves.toBeNull()
  const wrong = [0, 1].map(() => tickets.take(1, { signal: false as never }))
  for (const each of wrong) await expect(each).rejects.toMatchObject({ argument: 'signal' })
  await expect(tickets.take()).resolves.toBeNull()
})

it('an option may be passed on as undefined', () => {
  const options = {
    cached: { ...load, emptyTtl: undefined, jitter: undefined, lock: undefined, onError: undefined },
    leader: { onElected: () => {}, onError: undefined, ttl: undefined, env: undefined },
    once: { run: () => 1, every: undefined, atLeast: 1000, memory: undefined, lock: undefined },
    stock: { segments: 1, storage: { read: () => 1, write: () => true }, lock: undefined, env: undefined },
  } satisfies {
    cached: CachedOptions<string>
    leader: LeaderOptions
    once: OnceOptions<number>
    stock: StockOptions
  }
  const { holdfast } = world().process()
  expect(() => cached(holdfast, options.cached)).not.toThrow()
  expect(() => once(holdfast, 'report', options.once)).not.toThrow()
  expect(() => stripedStock(holdfast, 'tickets', options.stock)).not.toThrow()
})
