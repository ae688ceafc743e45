import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/index.ts'
import type { Store, StoreEvent } from '../../../src/core/contract.ts'
import { openRedisStore } from '../../../src/stores/redis/index.ts'

const TIMEOUT = 5_000
const request = (id: string, ttl = 5_000) =>
  ({
    name: 'x',
    id,
    ttl,
    weight: 1,
    capacity: 1,
    patience: 5_000,
    tokens: 1,
    whenBusy: 'queue',
    owner: 'test',
  }) as const

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a release with nobody behind it, through %s',
  (driver) => {
    let server: Server
    let store: Store
    beforeAll(async () => {
      server = await redis()
      store = await openRedisStore(server.url, { driver })
    })
    afterAll(async () => {
      await store.close()
      await server.stop()
    })

    const scriptsRun = async (): Promise<number> => {
      const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
    }

    it('needs no script', async () => {
      const holdfast = new Holdfast(store)
      await (await holdfast.mutex('warm').acquire()).release()
      const before = await scriptsRun()
      for (let round = 0; round < 10; round++) {
        const lease = await holdfast.mutex('x').acquire()
        expect(await lease.release()).toBe('released')
      }
      expect((await scriptsRun()) - before).toBe(10)
      await holdfast.close()
    })

    it('still wakes a waiter that nobody has told it of', async () => {
      const told: StoreEvent[] = []
      await store.watch('b', (event) => told.push(event), TIMEOUT)
      await store.claim(request('a.1'), TIMEOUT)
      expect((await store.claim(request('b.1'), TIMEOUT)).kind).toBe('queued')
      const answer = await store.release({ name: 'x', id: 'a.1', uncontended: true }, undefined, TIMEOUT)
      expect(answer).toEqual({ released: { kind: 'released' } })
      await expect.poll(() => told).toMatchObject([{ kind: 'granted', id: 'b.1' }])
      await store.release({ name: 'x', id: 'b.1', uncontended: true }, undefined, TIMEOUT)
    })

    it('takes nothing from somebody else, and says so', async () => {
      await store.claim(request('a.2', 20), TIMEOUT)
      await expect.poll(async () => (await store.claim(request('b.2'), TIMEOUT)).kind).toBe('held')
      const answer = await store.release({ name: 'x', id: 'a.2', uncontended: true }, undefined, TIMEOUT)
      expect(answer).toEqual({ released: { kind: 'not-held' } })
      expect(await store.inspect('x', TIMEOUT)).toMatchObject({ holders: [{ id: 'b.2' }] })
      await store.release({ name: 'x', id: 'b.2' }, undefined, TIMEOUT)
    })
  },
)
