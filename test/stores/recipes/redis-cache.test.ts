import { Redis } from 'ioredis'
import { createClient, RESP_TYPES } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { redisCache } from '../../../src/recipes/index.ts'
import type { FencedCache } from '../../../src/recipes/index.ts'
import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

describe.skipIf(!available('redis'))('a cache in Redis', () => {
  let server: Server
  const ends: (() => void)[] = []
  beforeAll(async () => void (server = await redis()))
  afterAll(async () => {
    for (const end of ends) end()
    await server.stop()
  })
  beforeEach(async () => void (await redisCommand(server, 'FLUSHALL')))

  const caches: Readonly<Record<string, () => Promise<FencedCache>>> = {
    ioredis: () => {
      const client = new Redis(server.url)
      ends.push(() => client.disconnect())
      return Promise.resolve(redisCache(client, { fenceTtl: 60_000 }))
    },
    redis: async () => {
      const client = createClient({ url: server.url })
      await client.connect()
      ends.push(() => client.destroy())
      return redisCache(client, { fenceTtl: 60_000 })
    },
    'redis that answers with bytes': async () => {
      const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer }
      const client = createClient({ url: server.url, commandOptions: { typeMapping } })
      await client.connect()
      ends.push(() => client.destroy())
      return redisCache(client, { fenceTtl: 60_000 })
    },
  }

  describe.each(Object.entries(caches))('through %s', (_, open) => {
    let cache: FencedCache
    beforeAll(async () => void (cache = await open()))

    it('gives back what was set, and nothing for a key that was not', async () => {
      expect(await cache.setFenced('k', 'text {}', { ttl: 5000, token: 7n })).toBe(true)
      expect(await cache.get('k')).toBe('text {}')
      expect(await cache.get('l')).toBe(null)
    })

    it('forgets the text after its ttl and the token after a longer time', async () => {
      await cache.setFenced('k', 'text', { ttl: 5000, token: 7n })
      const [text, fence] = [
        await redisCommand(server, 'PTTL', 'cache:{k}'),
        await redisCommand(server, 'PTTL', 'cache:{k}:fence'),
      ]
      expect(text).toBeGreaterThan(1000)
      expect(text).toBeLessThanOrEqual(5000)
      expect(fence).toBeGreaterThan(60_000)
      expect(fence).toBeLessThanOrEqual(65_000)
    })

    it('refuses what an earlier holder writes, also when the later text is gone already', async () => {
      await cache.setFenced('k', 'new', { ttl: 5000, token: 18_000_000_000_000_000_001n })
      expect(await cache.setFenced('k', 'old', { ttl: 5000, token: 18_000_000_000_000_000_000n })).toBe(false)
      expect(await cache.get('k')).toBe('new')
      await redisCommand(server, 'DEL', 'cache:{k}')
      expect(await cache.setFenced('k', 'old', { ttl: 5000, token: 18_000_000_000_000_000_000n })).toBe(false)
      expect(await cache.get('k')).toBe(null)
    })
  })
})
