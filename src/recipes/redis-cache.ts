import { checkOptions, checkPeriod, checkText, MAX_PERIOD_MS } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import type { RedisClient } from '../stores/redis/client/index.ts'
import { fencedWrite } from '../stores/redis/fenced-write.ts'
import { isHttpRedis } from '../stores/redis/client/http.ts'
import type { HttpRedisClient } from '../stores/redis/client/http.ts'
import type { FencedCache } from './cache.ts'

/** A client of `ioredis` or `redis`, for one server, a Sentinel group or a Cluster; or a `GlideClient`. */
export type RedisCacheClient = Exclude<RedisClient, HttpRedisClient> & { get(key: string): Promise<unknown> }

export interface RedisCacheOptions {
  /** Before every key. Default `cache:`. */
  readonly prefix?: string | undefined
  /**
   * Milliseconds for which the last writer's token is remembered after the value: a loader that was stopped for longer than
   * that could overwrite newer data. Default an hour.
   */
  readonly fenceTtl?: number | undefined
}

const OPTIONS: readonly (keyof RedisCacheOptions)[] = ['prefix', 'fenceTtl']

/** A cache in Redis that refuses what a loader writes after a later one. */
export function redisCache(client: RedisCacheClient, options: RedisCacheOptions = {}): FencedCache {
  checkOptions(options, OPTIONS, 'prefix')
  const { prefix = 'cache:', fenceTtl = 3_600_000 } = options
  if (typeof (client as Partial<RedisCacheClient> | null | undefined)?.get !== 'function')
    throw new InvalidArgumentError('client must be one of ioredis or redis', { argument: 'client' })
  if (isHttpRedis(client)) {
    throw new InvalidArgumentError(
      'client must be one of ioredis or redis: one over HTTP reads what it gets as JSON, and a text that looks like it comes back as something else',
      { argument: 'client' },
    )
  }
  checkText('prefix', prefix)
  checkPeriod('fenceTtl', fenceTtl)
  // In braces: in a Cluster the value and its token have to live on one node.
  const at = (key: string): string => `${prefix}{${key}}`
  return {
    async get(key) {
      const text = await client.get(at(key))
      // A client may be made to answer with bytes. What is neither is told to whoever reads it.
      return text instanceof Uint8Array ? Buffer.from(text).toString() : (text as string | null)
    },
    async setFenced(key, text, { ttl, token }) {
      const kept = { ttl, fenceTtl: Math.min(ttl + fenceTtl, MAX_PERIOD_MS) }
      const { accepted } = await fencedWrite(client, { key: at(key), value: text, token }, kept)
      return accepted
    },
  }
}
