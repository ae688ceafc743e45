import { InvalidArgumentError } from '../../core/errors.ts'
import { IoredisLink, isIoredis } from './ioredis.ts'
import type { IoredisClient } from './ioredis.ts'
import type { Link } from './link.ts'
import { isNodeRedis, nodeRedisLink } from './node-redis.ts'
import type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from './node-redis.ts'

/** A client of `ioredis` or `redis` (node-redis), for one server, a Sentinel group or a Cluster. */
export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel

/** `owned`: the store made the client itself, and ends it. */
export function linkTo(client: RedisClient, owned = false): Link {
  const given: unknown = client
  if (typeof given === 'object' && given !== null) {
    if (isIoredis(given)) return new IoredisLink(given, owned)
    if (isNodeRedis(given)) return nodeRedisLink(given, owned)
  }
  throw new InvalidArgumentError('client must be a client of the package ioredis or redis', {
    argument: 'client',
  })
}
