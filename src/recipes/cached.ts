import { checkFunction, checkOptions, checkPeriod } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { printable, shown } from '../core/printing.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { CapacityLock } from '../locks/lock.ts'
import type { Lock } from '../locks/lock.ts'
import { checkEnv, checkSignal } from '../locks/options.ts'
import type { LockOptions } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import type { Lease } from '../runtime/lease.ts'
import { sections } from '../runtime/sections.ts'
import { asCache, checkKept, isFenced, JSON_CODEC } from './cache.ts'
import type { AnyCache, Cache, Codec, FencedCache } from './cache.ts'
import { keyFor, lockNameFor } from './cache-key.ts'
import type { KeyOption } from './cache-key.ts'
import { checkHoldfast } from './check-holdfast.ts'
import { either } from './either.ts'
import { decodeEntry, encodeEntry, FORGOTTEN } from './entry.ts'
import type { Entry } from './entry.ts'
import { inTime } from './in-time.ts'
import { holdersOf, Loading, refuseLock } from './loading.ts'
import type { Holders } from './loading.ts'
import { abortedError, Rounds } from './rounds.ts'
import type { Course } from './rounds.ts'
import { tell } from './tell.ts'

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
  /** The key in the cache, or how it follows from what is asked for: everything that the value depends on has to be in it. */
  readonly key: KeyOption<A>
  /** Asks the database. What it throws reaches everybody in this process who waits for this load; it is not kept. */
  readonly load: (input: A, context: LoadContext) => V | PromiseLike<V>
  /** How long a value is good, at most. */
  readonly ttl: number
  /** How long it is remembered that there is nothing: `null` or `undefined`. Default: a tenth of `ttl`. */
  readonly emptyTtl?: number | undefined
  /** Up to this part of the ttl is taken off by chance, so that keys filled together do not end together. Default 0.1. */
  readonly jitter?: number | undefined
  /**
   * From this age on a value is still served, while one process loads it anew. Less than what `jitter` may leave of the ttl.
   * Default: never.
   */
  readonly refreshAfter?: number | undefined
  /** Default: JSON. */
  readonly codec?: Codec<NonNullable<V>> | undefined
  /** Of the lock `cache:<key>` that is held while loading. A key that is no lock's name has a hash there instead. */
  readonly lock?: Pick<LockOptions, 'ttl' | 'wait'> | undefined
  /**
   * Hears of what goes wrong where nobody waits: a refresh in the background, a value that could not be kept, one that
   * cannot be read.
   */
  readonly onError?: ((error: unknown, key: string) => unknown) | undefined
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env | undefined
}

export interface GetOptions {
  /** Ends this caller's wait. The load goes on for the others, and is aborted when nobody is left. */
  readonly signal?: AbortSignal | undefined
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
  checkHoldfast(holdfast)
  checkLoad(options)
  return new LockedCache(holdfast, options)
}

const OPTIONS: readonly (keyof CachedOptions<unknown>)[] = [
  'cache',
  'key',
  'load',
  'ttl',
  'emptyTtl',
  'jitter',
  'refreshAfter',
  'codec',
  'lock',
  'onError',
  'env',
]
const OF_CALL: readonly (keyof GetOptions)[] = ['signal']

function checkLoad<V, A>(options: CachedOptions<V, A>): void {
  const wrong = (argument: string, problem: string): never => {
    throw new InvalidArgumentError(`${argument} ${problem}`, { argument })
  }
  // Who writes no types may have left anything out.
  const given = options as unknown as Readonly<Record<string, unknown>> | null | undefined
  if (typeof given !== 'object' || given === null) {
    wrong('options', 'must be given: cached(holdfast, { cache, key, load, ttl })')
  }
  checkOptions(options, OPTIONS, 'ttl')
  const { key, load, codec, ttl, jitter = 0.1, refreshAfter } = options
  if (typeof key !== 'string' && typeof key !== 'function') wrong('key', 'must be a string or a function')
  if (typeof load !== 'function') wrong('load', 'must be a function')
  const coded = codec as Partial<Codec<unknown>> | null | undefined
  if (coded !== undefined && (typeof coded?.encode !== 'function' || typeof coded.decode !== 'function')) {
    wrong('codec', 'must have the functions encode and decode')
  }
  checkFunction('onError', options.onError)
  if (options.env !== undefined) checkEnv(options.env)
  checkPeriod('ttl', ttl)
  if (typeof jitter !== 'number' || !(jitter >= 0 && jitter < 1))
    wrong('jitter', 'must be at least 0 and below 1')
  if (refreshAfter === undefined) return
  checkPeriod('refreshAfter', refreshAfter)
  const earliestEnd = shortened(ttl, jitter)
  if (refreshAfter >= earliestEnd) {
    wrong('refreshAfter', `must be less than what jitter leaves of the ttl at least, ${earliestEnd} ms`)
  }
}

function shortened(ttl: number, part: number): number {
  return Math.max(1, Math.round(ttl * (1 - part)))
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
  private readonly holders: Holders
  private readonly rounds: Rounds<V>
  private readonly refreshing = new Set<string>()

  constructor(holdfast: Holdfast, options: CachedOptions<V, A>) {
    const { env = systemEnv, ttl, jitter = 0.1 } = options
    const { emptyTtl = Math.max(1, Math.round(ttl / 10)) } = options
    checkPeriod('emptyTtl', emptyTtl)
    this.holdfast = holdfast
    // Only to have its options looked at: a mistake in them would show at the first miss.
    holdfast.mutex('cache:', options.lock)
    this.holders = holdersOf(holdfast)
    this.rounds = new Rounds(this.holders)
    this.options = options
    this.env = env
    this.cache = asCache(options.cache, env)
    this.codec = options.codec ?? (JSON_CODEC as Codec<NonNullable<V>>)
    this.emptyTtl = emptyTtl
    this.jitter = jitter
  }

  get ttl(): number {
    return this.options.ttl
  }

  async get(input: A, options: GetOptions = {}): Promise<V> {
    checkOptions(options, OF_CALL, 'signal')
    const { signal } = options
    checkSignal(signal)
    const key = keyFor(this.options.key, input)
    if (signal?.aborted === true) throw abortedError(key, signal)
    const found = await this.read(key, signal)
    if (found === null) {
      await this.checkInside(key)
      return this.rounds.join(key, lockNameFor(key), signal, (course) => this.round(input, key, course))
    }
    if (this.isDue(found)) this.refreshInBackground(input, key)
    return found.value
  }

  async forget(input: A, options: GetOptions = {}): Promise<void> {
    checkOptions(options, OF_CALL, 'signal')
    const { signal } = options
    checkSignal(signal)
    const key = keyFor(this.options.key, input)
    const lock = lockNameFor(key)
    refuseLock(key, lock, this.holders)
    const granted = new Loading(key, lock, this.holders).awaited()
    // Under the lock: a load that is under way would put back what it read before.
    const lease = await this.lockFor(key)
      .acquire(signal === undefined ? {} : { signal })
      .finally(granted)
    try {
      // Lost, or closed, since it was granted.
      if (lease.signal.aborted) throw lease.signal.reason
      const { cache } = this
      const { ttl } = this.options
      await inTime<unknown>(this.env, { what: 'cache', key }, () =>
        isFenced(cache) ? cache.setFenced(key, FORGOTTEN, { ttl, token: lease.token }) : cache.delete(key),
      )
    } finally {
      await lease.release()
    }
  }

  /** One round for all who miss the key in this process at this time. */
  private async round(input: A, key: string, { load, left, over }: Course): Promise<V> {
    const lease = await this.lockFor(key).acquire({ signal: left })
    load.hold(lease)
    try {
      // Whoever had the lock before us has most likely loaded it.
      const found = await this.read(key, left)
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
    // Lost, or closed, since it was granted: nothing is begun any more.
    if (lease.signal.aborted) throw lease.signal.reason
    const value = await this.ask(input, key, lease, left)
    const kept = this.prepare(key, value)
    if (kept === null) return value
    const empty = value === null || value === undefined
    const ttl = shortened(empty ? this.emptyTtl : this.options.ttl, this.jitter * this.env.random())
    const written = await this.write(key, kept.text, ttl, lease)
    // Who came too late looks at what the later one wrote.
    const newer = written ? null : await this.read(key)
    return (newer ?? kept.entry).value
  }

  private async ask(input: A, key: string, { signal, token }: Lease, left?: AbortSignal): Promise<V> {
    if (left === undefined) return this.options.load(input, shown({ key, signal, token }))
    const first = either(signal, left)
    try {
      return await this.options.load(input, shown({ key, signal: first.signal, token }))
    } finally {
      first.untie()
    }
  }

  /**
   * What is to be kept, and what others will read from it: that is what this caller gets too, so that a Date that JSON makes a
   * string shows at once. Null: it cannot be written down, or not be read again, and would be loaded anew by everybody.
   */
  private prepare(key: string, value: V): { readonly text: string; readonly entry: Entry<V> } | null {
    const { refreshAfter = Infinity } = this.options
    const refreshAt = this.env.wall() + refreshAfter
    try {
      const text = encodeEntry({ value, refreshAt }, this.codec)
      return { text, entry: decodeEntry<V>(text, this.codec) ?? { value, refreshAt } }
    } catch (error) {
      this.report(error, key)
      return null
    }
  }

  /** False: somebody later may hold the lock, and the cache was left alone. */
  private async write(key: string, text: string, ttl: number, lease: Lease): Promise<boolean> {
    if (!lease.held) return false
    const { cache } = this
    const { token } = lease
    const asked = { what: 'cache', key }
    try {
      if (isFenced(cache))
        return await inTime(this.env, asked, () => cache.setFenced(key, text, { ttl, token }))
      checkKept(await inTime<unknown>(this.env, asked, () => cache.set(key, text, ttl)), asked.what)
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
    const load = new Loading(key, lockNameFor(key), this.holders)
    load
      .runAlone(() => this.refresh(input, key, load))
      .catch((error: unknown) => this.report(error, key))
      .then(later, later)
  }

  private async refresh(input: A, key: string, load: Loading): Promise<void> {
    const lease = await this.lockFor(key).tryAcquire()
    if (lease === null) return
    load.hold(lease)
    try {
      const found = await this.read(key)
      if (found === null || this.isDue(found)) await this.load(input, key, lease)
    } finally {
      load.end()
      await lease.release()
    }
  }

  private async read(key: string, signal?: AbortSignal): Promise<Entry<V> | null> {
    const text = await inTime(this.env, { what: 'cache', key, signal }, () => this.cache.get(key))
    try {
      return decodeEntry<V>(text, this.codec)
    } catch (error) {
      this.report(error, key)
      return null
    }
  }

  private isDue({ refreshAt }: Entry<V>): boolean {
    return this.env.wall() >= refreshAt
  }

  /** Who holds the key's lock would wait, in a round that others have begun, for itself. */
  private async checkInside(key: string): Promise<void> {
    if (sections.getStore() === undefined) return
    const lock = this.lockFor(key)
    if (lock instanceof CapacityLock) await lock.checkInside('wait')
  }

  private lockFor(key: string): Lock {
    return this.holdfast.mutex(lockNameFor(key), this.options.lock)
  }

  private report(error: unknown, key: string): void {
    tell(() => this.options.onError?.(error, key))
  }
}

// Not what it was given: a client may have a password.
printable(LockedCache, 'Cached', ({ ttl }) => ({ ttl }))
