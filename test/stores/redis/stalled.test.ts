import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { openRedisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const REQUESTS = 20_000

/** The longest time that this process worked without a turn of its event loop. What others use of the machine does not count. */
class Turns {
  longest = 0
  private work = process.cpuUsage()
  private readonly timer = setInterval(() => this.look(), 5)

  look(): void {
    const { user, system } = process.cpuUsage(this.work)
    this.work = process.cpuUsage()
    this.longest = Math.max(this.longest, (user + system) / 1_000)
  }

  stop(): void {
    clearInterval(this.timer)
  }
}

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a server that stands still while thousands ask, through %s',
  (driver) => {
    let server: Server
    beforeEach(async () => void (server = await redis()))
    afterEach(() => server.stop())

    it('blocks nobody’s event loop, is not stormed with connections, and is left clean', async () => {
      const store = await openRedisStore(server.url, { driver })
      const holdfast = new Holdfast(store, { wait: 4_000 })
      await holdfast.mutex('warm').run(() => {})
      await server.pause()
      const asked = Array.from({ length: REQUESTS }, (_, at) =>
        holdfast
          .mutex(`name-${at}`)
          // Timeouts of many lengths, as a program with many kinds of work has them.
          .acquire({ ttl: 2_000 + (at % 997) })
          .then(
            () => 'held',
            ({ code }: { code: string }) => code,
          ),
      )
      const turns = new Turns()
      const answers = await Promise.all(asked)
      turns.stop()
      expect(new Set(answers)).toEqual(new Set(['STORE_UNAVAILABLE']))
      // It was 13 s: each request that was not answered looked at all the others, and made a new connection.
      expect(turns.longest).toBeLessThan(3_000)
      await server.resume()
      expect((await holdfast.close()).cutShort).toEqual([])
      await store.close()
      const stats = String(await redisCommand(server, 'INFO', 'stats'))
      expect(Number(/total_connections_received:(\d+)/.exec(stats)?.[1])).toBeLessThan(50)
    })
  },
)
