import { checkMs, MAX_MS } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import type { LockOptions } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import type { Lease } from '../runtime/lease.ts'
import { asCache, isFenced, JSON_CODEC } from './cache.ts'
import type { AnyCache, Cache, Codec, FencedCache } from './cache.ts'
import { decodeEntry, encodeEntry, FORGOTTEN } from './entry.ts'
import type { Entry } from './entry.ts'
import { abortedError, Rounds } from './rounds.ts'

export interface LoadContext {
  readonly key: string
  /** Aborts when the lease is lost, or when nobody waits for the value any more. */
  readonly signal: AbortSignal
  /** The fencing token of the load. */
  readonly token: bigint
}

/** All times are milliseconds. */
export interface CachedOptions<V, A = void> {
  readonly cache: AnyCache
  /** The key in the cache, or how it follows from what is asked for. */
  readonly key: string | ((input: A) => string)
  /** Asks the database. What it throws reaches everybody in this process who waits for this load; it is not kept. */
  readonly load: (input: A, context: LoadContext) => V | PromiseLike<V>
  /** How long a value is good, at most. */
  readonly ttl: number
  /** How long it is remembered that there is nothing: `null` or `undefined`. Default: a tenth of `ttl`. */
  readonly emptyTtl?: number
  /** Up to this part of the ttl is taken off by chance, so that keys filled together do not end together. Default 0.1. */
  readonly jitter?: number
  /** From this age on a value is still served, while one process loads it anew. Default: never. */
  readonly refreshAfter?: number
  /** Default: JSON. */
  readonly codec?: Codec<NonNullable<V>>
  /** Of the lock `cache:<key>` that is held while loading. */
  readonly lock?: Pick<LockOptions, 'ttl' | 'wait'>
  /** Hears of what goes wrong where nobody waits: a refresh in the background, a value that could not be kept. */
  readonly onError?: (error: unknown, key: string) => void
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env
}

export interface GetOptions {
  /** Ends this caller's wait. The load goes on for the others, and is aborted when nobody is left. */
  readonly signal?: AbortSignal
}

export interface Cached<V, A = void> {
  get(input: A, options?: GetOptions): Promise<V>
  /** Takes the value away. Whoever asks after that gets one whose load began after the call. */
  forget(input: A, options?: GetOptions): Promise<void>
}

/**
 * Reads through a cache. On a miss one process of all loads, and the others are woken when it is done.
 *
 *     const product = cached(holdfast, { cache, key: (id: number) => `product:${id}`, load: (id) => db.product(id), ttl: 60_000 })
 *     await product.get(17)
 */
export function cached<V, A = void>(holdfast: Holdfast, options: CachedOptions<V, A>): Cached<V, A> {
  return new LockedCache(holdfast, options)
}

/** Pause between attempts of one process to refresh one key. */
const REFRESH_PAUSE_MS = 1000

class LockedCache<V, A> implements Cached<V, A> {
  private readonly holdfast: Holdfast
  private readonly options: CachedOptions<V, A>
  private readonly cache: Cache | FencedCache
  private readonly codec: Codec<NonNullable<V>>
  private readonly env: Env
  private readonly emptyTtl: number
  private readonly jitter: number
  private readonly rounds = new Rounds<V>()
  private readonly refreshing = new Set<string>()

  constructor(holdfast: Holdfast, options: CachedOptions<V, A>) {
    const { env = systemEnv, ttl, jitter = 0.1, refreshAfter } = options
    checkMs('ttl', ttl, { min: 1, max: MAX_MS })
    const { emptyTtl = Math.max(1, Math.round(ttl / 10)) } = options
    checkMs('emptyTtl', emptyTtl, { min: 1, max: MAX_MS })
    if (refreshAfter !== undefined) checkMs('refreshAfter', refreshAfter, { min: 1, max: ttl })
    if (!(jitter >= 0 && jitter < 1)) {
      throw new InvalidArgumentError('jitter must be at least 0 and below 1', { argument: 'jitter' })
    }
    this.holdfast = holdfast
    this.options = options
    this.env = env
    this.cache = asCache(options.cache, env)
    this.codec = options.codec ?? (JSON_CODEC as Codec<NonNullable<V>>)
    this.emptyTtl = emptyTtl
    this.jitter = jitter
  }

  async get(input: A, { signal }: GetOptions = {}): Promise<V> {
    const key = this.keyOf(input)
    if (signal?.aborted === true) throw abortedError(key, signal)
    const found = await this.read(key)
    if (found === null)
      return this.rounds.join(key, signal, (left, over) => this.round(input, key, left, over))
    if (this.isDue(found)) this.refreshInBackground(input, key)
    return found.value
  }

  async forget(input: A, { signal }: GetOptions = {}): Promise<void> {
    const key = this.keyOf(input)
    // Under the lock: a load that is under way would put back what it read before.
    const lease = await this.lockFor(key).acquire(signal === undefined ? {} : { signal })
    try {
      const { ttl } = this.options
      if (isFenced(this.cache)) await this.cache.setFenced(key, FORGOTTEN, { ttl, token: lease.token })
      else await this.cache.delete(key)
    } finally {
      await lease.release()
    }
  }

  /** One round for all who miss the key in this process at this time. */
  private async round(input: A, key: string, left: AbortSignal, over: () => void): Promise<V> {
    const lease = await this.lockFor(key).acquire({ signal: left })
    try {
      // Whoever had the lock before us has most likely loaded it.
      const found = await this.read(key)
      if (found !== null) return found.value
      if (left.aborted) throw abortedError(key, left)
      return await this.load(input, key, lease, left)
    } finally {
      // Before the release: who asks after a `forget` must not be given what was loaded before it.
      over()
      // Nobody has to wait for the store's answer; a release never rejects.
      lease.release().catch(() => {})
    }
  }

  private async load(input: A, key: string, lease: Lease, left?: AbortSignal): Promise<V> {
    const signal = left === undefined ? lease.signal : AbortSignal.any([lease.signal, left])
    const value = await this.options.load(input, { key, signal, token: lease.token })
    const { refreshAfter = Infinity } = this.options
    const text = encodeEntry({ value, refreshAt: this.env.wall() + refreshAfter }, this.codec)
    const empty = value === null || value === undefined
    const written = await this.write(
      key,
      text,
      this.jittered(empty ? this.emptyTtl : this.options.ttl),
      lease,
    )
    // Who came too late looks at what the later one wrote.
    const newer = written ? null : await this.read(key)
    // What others will get from the cache, this caller gets too: a Date that JSON makes a string shows at once.
    const entry = newer ?? decodeEntry<V>(text, this.codec)
    return entry === null ? value : entry.value
  }

  /** False: somebody later may hold the lock, and the cache was left alone. */
  private async write(key: string, text: string, ttl: number, lease: Lease): Promise<boolean> {
    if (!lease.held) return false
    try {
      if (isFenced(this.cache)) return await this.cache.setFenced(key, text, { ttl, token: lease.token })
      await this.cache.set(key, text, ttl)
    } catch (error) {
      this.report(error, key)
    }
    return true
  }

  private refreshInBackground(input: A, key: string): void {
    if (this.refreshing.has(key)) return
    this.refreshing.add(key)
    // Also after success: to a clock that is ahead of the writer's, what was just written looks old.
    const later = (): void =>
      void this.env.setTimer(() => this.refreshing.delete(key), REFRESH_PAUSE_MS, true)
    this.refresh(input, key)
      .catch((error: unknown) => this.report(error, key))
      .then(later, later)
  }

  private async refresh(input: A, key: string): Promise<void> {
    const lease = await this.lockFor(key).tryAcquire()
    if (lease === null) return
    try {
      const found = await this.read(key)
      if (found === null || this.isDue(found)) await this.load(input, key, lease)
    } finally {
      await lease.release()
    }
  }

  private async read(key: string): Promise<Entry<V> | null> {
    return decodeEntry<V>(await this.cache.get(key), this.codec)
  }

  private isDue({ refreshAt }: Entry<V>): boolean {
    return this.env.wall() >= refreshAt
  }

  private jittered(ttl: number): number {
    return Math.max(1, Math.round(ttl * (1 - this.jitter * this.env.random())))
  }

  private keyOf(input: A): string {
    const { key } = this.options
    return typeof key === 'string' ? key : key(input)
  }

  private lockFor(key: string): Lock {
    return this.holdfast.mutex(`cache:${key}`, this.options.lock)
  }

  private report(error: unknown, key: string): void {
    try {
      this.options.onError?.(error, key)
    } catch {
      // Nobody is there who could hear of it.
    }
  }
}
