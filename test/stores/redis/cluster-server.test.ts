import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Lease } from 'holdfast'
import { checkRedis, openRedisStore } from 'holdfast/redis'

import { available, redisCluster } from '../../../scripts/services.mjs'
import type { RedisCluster } from '../../../scripts/services.mjs'

/** What managed services call "cluster mode", reached by a client that knows nothing of it. */
describe.skipIf(!available('redis-cluster')).each(['ioredis', 'redis'] as const)(
  'a server for a Cluster, through a client of %s for one server',
  (driver) => {
    let cluster: RedisCluster
    const url = (): string => `redis://127.0.0.1:${cluster.nodes[0]?.port}`

    describe('that has all slots', () => {
      beforeAll(async () => void (cluster = await redisCluster({ primaries: 1 })))
      afterAll(() => cluster.stop())

      it('gives out, renews and hands over locks of any number of names at once', async () => {
        const stores = await Promise.all([0, 1].map(() => openRedisStore(url(), { driver })))
        const [one, other] = stores.map((store) => new Holdfast(store, { ttl: 600, wait: 5_000 }))
        const names = Array.from({ length: 20 }, (_, number) => `name-${number}`)
        const leases = await Promise.all(names.map((name) => one!.mutex(name).acquire()))
        // Two renewals at least.
        await new Promise((resolve) => void setTimeout(resolve, 900))
        expect(leases.filter(({ held }) => held)).toHaveLength(20)
        const waiting: Promise<Lease>[] = names.map((name) => other!.mutex(name).acquire())
        for (const lease of leases) expect(await lease.release()).toBe('released')
        for (const lease of await Promise.all(waiting)) expect(await lease.release()).toBe('released')
        for (const holdfast of [one, other]) await holdfast?.close()
        for (const store of stores) await store.close()
      })

      it('is refused for durable fencing, which needs two keys of any slots', async () => {
        await expect(openRedisStore(url(), { driver, fencing: 'durable' })).rejects.toThrow(
          'in a Redis Cluster no mark can stand beside every counter',
        )
      })

      it('is called what it is by the checks', async () => {
        expect(await checkRedis(url(), { driver })).toContainEqual(
          expect.objectContaining({ code: 'cluster', level: 'warning' }),
        )
      })
    })

    describe('that has some of the slots', () => {
      beforeAll(async () => void (cluster = await redisCluster({ primaries: 3 })))
      afterAll(() => cluster.stop())

      it('says what to use instead when it is asked for a name of another', async () => {
        const names = Array.from({ length: 20 }, (_, number) => `name-${number}`)
        const lock = async (name: string): Promise<string> => {
          const store = await openRedisStore(url(), { driver })
          const holdfast = new Holdfast(store, { wait: 1_000 })
          const answer = await holdfast
            .mutex(name)
            .run(() => 'held')
            .catch((error: unknown) => String((error as Error).cause))
          await holdfast.close()
          await store.close()
          return answer
        }
        const answers = await Promise.all(names.map((name) => lock(name).catch(String)))
        const other = answers.filter((answer) => answer !== 'held')
        expect(other.length).toBeGreaterThan(0)
        for (const answer of other) expect(answer).toContain('redis+cluster://')
      })
    })
  },
)
