import { types } from 'node:util'

import type { MaybePromise } from '../core/contract.ts'
import { InvalidArgumentError, StoreUnavailableError } from '../core/errors.ts'
import type { Env } from '../runtime/env.ts'
import { SleepClock } from './sleep-clock.ts'

/**
 * A place for texts that forgets them after a while. Keyv and its adapters are one as they are; `redisCache` makes one of
 * a Redis client, and a Map may be passed wherever a cache is asked for.
 */
export interface Cache {
  get(key: string): MaybePromise<string | null | undefined>
  /** `ttl`: milliseconds after which the cache has to forget the text by itself. Resolves with false if it was not kept, or rejects. */
  set(key: string, text: string, ttl: number): unknown
  delete(key: string): unknown
}

export interface FencedSet {
  /** Milliseconds. */
  readonly ttl: number
  /** The writer's fencing token. */
  readonly token: bigint
}

/** A cache that can compare: it refuses what comes from an earlier holder of the lock than its last writer. */
export interface FencedCache extends Pick<Cache, 'get'> {
  /** Resolves with false, and has changed nothing, if a larger token has written the key before. */
  setFenced(key: string, text: string, set: FencedSet): MaybePromise<boolean>
}

export type AnyCache = Cache | FencedCache | Map<string, unknown>

/** How values become texts and back. The default is JSON. */
export interface Codec<V> {
  encode(value: V): string
  decode(text: string): V
}

export const JSON_CODEC: Codec<unknown> = {
  encode: (value) => JSON.stringify(value),
  decode: (text) => JSON.parse(text) as unknown,
}

export function isFenced(cache: Cache | FencedCache): cache is FencedCache {
  return 'setFenced' in cache
}

/** Also one of another realm, or behind a Proxy: taken for a cache like any other, it would forget nothing. */
const isMap = (cache: AnyCache): cache is Map<string, unknown> => cache instanceof Map || types.isMap(cache)

export function asCache(cache: AnyCache, env: Env): Cache | FencedCache {
  if (isMap(cache)) return new MapCache(cache, env)
  const given = cache as unknown as Readonly<Record<string, unknown>> | null | undefined
  const has = (method: string): boolean => typeof given?.[method] === 'function'
  if (!has('get') || !(has('setFenced') || (has('set') && has('delete')))) {
    const message = 'cache must be a Map, or have get, set and delete, or get and setFenced'
    throw new InvalidArgumentError(message, { argument: 'cache' })
  }
  return cache
}

/** Of what `set` says. Keyv, and what is made of it, tells listeners of its own what went wrong, and says false. */
export function checkKept(answer: unknown, what: string): void {
  if (answer !== false) return
  const message = `The ${what} has not kept what it was given: its set said false. Check that it runs and can be reached.`
  throw new StoreUnavailableError(message, { store: what })
}

interface Kept {
  readonly text: string
  readonly until: number
}

/** Several caches may have one Map, and read each other's times. Each clock begins with the sleep before it left out. */
const clocks = new WeakMap<Env, SleepClock>()

function clockOf(env: Env): SleepClock {
  const clock = clocks.get(env) ?? new SleepClock(env)
  clocks.set(env, clock)
  return clock
}

/** A Map forgets nothing by itself. It belongs to one process, so that one's clock will do: time in which the machine slept counts. */
class MapCache implements Cache {
  private readonly map: Map<string, unknown>
  private readonly clock: SleepClock

  constructor(map: Map<string, unknown>, env: Env) {
    this.map = map
    this.clock = clockOf(env)
  }

  get(key: string): string | undefined {
    const kept = this.map.get(key) as Kept | undefined
    if (kept === undefined || this.clock.now() < kept.until) return kept?.text
    this.map.delete(key)
    return undefined
  }

  set(key: string, text: string, ttl: number): void {
    this.map.set(key, { text, until: this.clock.now() + ttl } satisfies Kept)
  }

  delete(key: string): void {
    this.map.delete(key)
  }
}
