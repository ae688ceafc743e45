import { Redis } from 'ioredis'

import type { ServerHandle } from '../live/servers.ts'
import type { Play } from './play.ts'

/** A plain connection, as somebody who builds a lock from commands would use it. It ends with the play. */
export function redisClient(play: Play, server: Pick<ServerHandle, 'host' | 'port'> | undefined): Redis {
  if (server === undefined) throw new Error('there is no Redis')
  const { host, port } = server
  const redis = new Redis({ host, port, maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => undefined)
  play.finally(() => redis.disconnect())
  return redis
}
