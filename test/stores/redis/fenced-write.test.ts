import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { fencedWrite } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a fenced write, through %s',
  (driver) => {
    let server: Server
    let client: RedisClient & { disconnect?(): unknown }
    beforeAll(async () => {
      server = await redis()
      if (driver === 'ioredis') client = new Redis(server.port)
      else {
        const connected = createClient({ url: server.url })
        await connected.connect()
        client = connected
      }
    })
    afterAll(async () => {
      await client.disconnect?.()
      await server.stop()
    })
    beforeEach(() => redisCommand(server, 'FLUSHALL'))

    const write = (value: string, token: bigint) => fencedWrite(client, { key: 'stock', value, token })
    const stored = () => redisCommand(server, 'GET', 'stock')

    it('is accepted with the token of the last one, or a larger one', async () => {
      expect(await write('a', 5n)).toEqual({ accepted: true, token: 5n })
      expect(await write('b', 5n)).toEqual({ accepted: true, token: 5n })
      expect(await write('c', 7n)).toEqual({ accepted: true, token: 7n })
      expect(await stored()).toBe('c')
    })

    it('is refused with a smaller one, and told the last', async () => {
      await write('new', 1_794_781_630_558_389n)
      expect(await write('old', 999n)).toEqual({ accepted: false, token: 1_794_781_630_558_389n })
      expect(await stored()).toBe('new')
    })

    it('refuses a key or a value that is no text, and writes nothing', async () => {
      // JSON.stringify says that it gives a string, also for what it gives none.
      const nothing = undefined as unknown as string
      const refused = { code: 'INVALID_ARGUMENT' }
      await expect(fencedWrite(client, { key: nothing, value: 'a', token: 5n })).rejects.toMatchObject(
        refused,
      )
      await expect(write(nothing, 5n)).rejects.toMatchObject(refused)
      expect(await redisCommand(server, 'KEYS', '*')).toEqual([])
    })

    it('tells neighbours apart also beyond what a double can', async () => {
      const large = 2n ** 60n
      await write('new', large + 1n)
      expect(await write('old', large)).toEqual({ accepted: false, token: large + 1n })
    })

    it('keeps value and fence for as long as it is told', async () => {
      await fencedWrite(client, { key: 'stock', value: 'a', token: 5n }, { ttl: 10_000, fenceTtl: 60_000 })
      expect(Number(await redisCommand(server, 'PTTL', 'stock'))).toBeGreaterThan(9_000)
      expect(Number(await redisCommand(server, 'PTTL', 'stock:fence'))).toBeGreaterThan(59_000)
      await write('b', 6n)
      expect(await redisCommand(server, 'PTTL', 'stock')).toBe(-1)
      expect(await redisCommand(server, 'PTTL', 'stock:fence')).toBe(-1)
    })

    it('goes on when the server has forgotten the script', async () => {
      await redisCommand(server, 'SCRIPT', 'FLUSH')
      expect(await write('a', 1n)).toEqual({ accepted: true, token: 1n })
    })

    it('refuses a token that is none, and a key without a tag in a Cluster', async () => {
      for (const token of [5, '5', -1n, 2n ** 64n]) {
        await expect(write('x', token as bigint)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      }
      const cluster = new Cluster([{ host: server.host, port: server.port }], { lazyConnect: true })
      // An empty tag is none, and what is behind it does not count.
      for (const key of ['stock', 'a{}b{c}', 'a}{'])
        await expect(fencedWrite(cluster, { key, value: '', token: 1n })).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument: 'key',
        })
      cluster.disconnect()
    })
  },
)
