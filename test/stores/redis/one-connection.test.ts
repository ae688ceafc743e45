import { createRequire } from 'node:module'

import { describe, expect, it } from 'vitest'

import { Holdfast, HoldfastError } from 'holdfast'
import type { Store } from 'holdfast/store'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { driverFor } from '../../../src/stores/redis/client/index.ts'
import { withNodeRedis } from '../../../src/stores/redis/client/of-url.ts'
import type { NodeRedis } from '../../../src/stores/redis/client/of-url.ts'
import { openRedisStore } from '../../../src/stores/redis/open.ts'
import { storeOn } from '../../../src/stores/redis/redis-store.ts'
import { parseUrl } from '../../../src/stores/redis/url.ts'

const require = createRequire(import.meta.url)

/** So often somebody waits in vain while the server stands still: longer than it takes to give up several connections. */
const TRIES = 16
const WAIT_MS = 400

/** As `open` makes it, of each version of each driver. */
function opened(driver: string, { url }: Server): Promise<Store> {
  if (driver === 'ioredis') return openRedisStore(url, { driver })
  return Promise.resolve(
    storeOn(driverFor(withNodeRedis(require(driver) as NodeRedis, parseUrl(url)), true), {}),
  )
}

async function connections(server: Server): Promise<number> {
  const list = String(await redisCommand(server, 'CLIENT', 'LIST', 'TYPE', 'normal'))
  return list.split('\n').filter((line) => line !== '' && !line.includes('cmd=client')).length
}

/**
 * A server that takes connections and answers none of them: each one that is given up must be closed. A driver that goes on with
 * several mixes up what they say: an answer on one was taken for that to a question on another, and so a lock that somebody
 * else held for granted.
 */
describe.skipIf(!available('redis')).each(['ioredis', 'redis', 'redis-4', 'redis-6'])(
  'after a server has stood still, through %s',
  (driver) => {
    it('there is one connection to it, and none after close()', async () => {
      const server = await redis()
      try {
        const store = await opened(driver, server)
        const holdfast = new Holdfast(store, { requestTimeout: 200 })
        await server.pause()
        for (let i = 0; i < TRIES; i++)
          await expect(holdfast.mutex('a').acquire({ wait: WAIT_MS })).rejects.toThrow(HoldfastError)
        await server.resume()
        await holdfast.mutex('a').run(() => {})
        await expect.poll(() => connections(server)).toBe(1)
        await holdfast.close()
        await store.close()
        await expect.poll(() => connections(server)).toBe(0)
      } finally {
        await server.stop()
      }
    }, 60_000)
  },
)
