import { InvalidArgumentError } from '../../../core/errors.ts'
import { GlideDriver, isGlide, isGlideCluster } from './glide.ts'
import type { GlideClient } from './glide.ts'
import { HttpDriver, isHttpRedis } from './http.ts'
import type { HttpRedisClient } from './http.ts'
import { IoredisDriver, isIoredis } from './ioredis.ts'
import type { IoredisClient } from './ioredis.ts'
import type { Driver } from './driver.ts'
import { NodeRedisPlainDriver } from './node-redis.ts'
import type { NodeRedisClient, PlainClient } from './node-redis.ts'
import { NodeRedisClusterDriver } from './node-redis-cluster.ts'
import type { ClusterClient, NodeRedisCluster } from './node-redis-cluster.ts'
import { NodeRedisSentinelDriver } from './node-redis-sentinel.ts'
import type { NodeRedisSentinel } from './node-redis-sentinel.ts'

/**
 * A client of `ioredis` or `redis` (node-redis), for one server, a Sentinel group or a Cluster; of `@upstash/redis`, over HTTP; or a
 * `GlideClient` of `@valkey/valkey-glide`.
 */
export type RedisClient =
  | IoredisClient
  | NodeRedisClient
  | NodeRedisCluster
  | NodeRedisSentinel
  | HttpRedisClient
  | GlideClient

/** `owned`: the store made the client itself, and ends it. */
export function driverFor(client: RedisClient, owned = false): Driver {
  const given: unknown = client
  if (typeof given === 'object' && given !== null) {
    if (isIoredis(given)) return new IoredisDriver(given, owned)
    if ('totalClients' in given) {
      throw new InvalidArgumentError(
        'client must be one connection: a pool cannot tell which one a command takes. Use createClient',
        { argument: 'client' },
      )
    }
    if ('sendCommand' in given && 'isOpen' in given) {
      if (isLegacy(given)) {
        throw new InvalidArgumentError(
          'client must not be in legacyMode, in which commands have callbacks: give the store client.duplicate({ legacyMode: false })',
          { argument: 'client' },
        )
      }
      // Three kinds of clients, each with a `sendCommand` of its own.
      if ('masters' in given) return new NodeRedisClusterDriver(given as ClusterClient, owned)
      if ('getMasterNode' in given) return new NodeRedisSentinelDriver(given as never)
      return new NodeRedisPlainDriver(given as PlainClient, owned)
    }
    if (isGlide(given)) {
      if (!isGlideCluster(given)) return new GlideDriver(given)
      throw new InvalidArgumentError(
        'client must be a GlideClient: for a Cluster give the store a client of ioredis (Cluster) or redis (createCluster)',
        { argument: 'client' },
      )
    }
    if (isHttpRedis(given)) return new HttpDriver(given)
  }
  throw new InvalidArgumentError(
    'client must be a client of the package ioredis (5 or newer), redis (4.3 or newer), @upstash/redis or @valkey/valkey-glide',
    {
      argument: 'client',
    },
  )
}

/** A driver for as long as it is used: it may listen to the client until it is closed, and a client is asked so millions of times. */
export async function withDriver<T>(client: RedisClient, use: (driver: Driver) => Promise<T>): Promise<T> {
  const driver = driverFor(client)
  try {
    return await use(driver)
  } finally {
    await driver.close()
  }
}

/** `redis` 4, in the manner of version 3. */
function isLegacy(client: object): boolean {
  const { options } = client as { options?: { legacyMode?: unknown } }
  return 'v4' in client && options?.legacyMode === true
}
