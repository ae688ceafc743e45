import type { Store } from '../core/contract.ts'
import { Holdfast } from '../locks/holdfast.ts'
import type { Env } from '../runtime/env.ts'
import { isFenced, JSON_CODEC } from './cache.ts'
import type { Cache, FencedCache } from './cache.ts'

/** A run of the job, as it is remembered. Times are wall time of the instance that ran it, in milliseconds. */
export interface RunRecord<T> {
  readonly began: number
  readonly ended: number
  /** Its fencing token, in digits. */
  readonly token: string
  readonly outcome: { readonly kind: 'result'; readonly value: T } | { readonly kind: 'failed' }
}

/** A run that has begun, from the memory's side. */
export interface Mark<T> {
  /** It counts: no other for the rest of the hold. */
  keep(record: RunRecord<T>): Promise<void>
  /** It does not. */
  drop(): Promise<void>
}

/** Where it is remembered that the job ran. */
export interface RunMemory<T> {
  last(): Promise<RunRecord<T> | null>
  /** Only under the job's lock. Null: there was a run less than the hold ago. */
  begin(): Promise<Mark<T> | null>
}

export interface MemoryOptions {
  readonly name: string
  /** Milliseconds, from the beginning of a run. */
  readonly hold: number
  readonly env: Env
}

/**
 * A claim of its own that is neither renewed nor released: the store forgets it when the hold is over, and counts that from the
 * run's beginning, also if this process dies meanwhile. The job's own lock could not do both: it has to be renewed while
 * the job runs, and then lasts from the last renewal.
 */
export function claimMemory<T>(store: Store, { name, hold, env }: MemoryOptions): RunMemory<T> {
  let lastHere: RunRecord<T> | null = null
  return {
    last: () => Promise.resolve(lastHere),
    async begin() {
      // Not the user's Holdfast: to close that one would release the claim, and a restart run the job again.
      const keeper = new Holdfast(store, { env, ttl: hold, renew: false })
      try {
        const lease = await keeper.mutex(`${name}:ran`).tryAcquire()
        if (lease !== null) {
          return {
            async keep(record) {
              lastHere = record
              await keeper.close({ release: false })
            },
            async drop() {
              await keeper.close({ drain: 0 })
            },
          }
        }
      } catch (error) {
        await keeper.close()
        throw error
      }
      await keeper.close()
      return null
    },
  }
}

/** A record in a cache that all instances share. Of a run that died before its end it knows nothing. */
export function cacheMemory<T>(cache: Cache | FencedCache, { name, hold, env }: MemoryOptions): RunMemory<T> {
  const key = `ran:${name}`
  const last = async (): Promise<RunRecord<T> | null> => {
    const text = await cache.get(key)
    return typeof text === 'string' ? (JSON_CODEC.decode(text) as RunRecord<T>) : null
  }
  return {
    last,
    async begin() {
      if ((await last()) !== null) return null
      const began = env.mono()
      return {
        async keep(record) {
          const ttl = Math.max(1, Math.round(began + hold - env.mono()))
          const text = JSON_CODEC.encode(record)
          if (isFenced(cache)) await cache.setFenced(key, text, { ttl, token: BigInt(record.token) })
          else await cache.set(key, text, ttl)
        },
        drop: () => Promise.resolve(),
      }
    },
  }
}
