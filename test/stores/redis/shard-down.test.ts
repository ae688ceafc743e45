import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { ClaimRequest } from 'holdfast/store'
import { checkRedis, openRedisStore } from 'holdfast/redis'

import { available, redisCluster } from '../../../scripts/services.mjs'
import type { RedisCluster } from '../../../scripts/services.mjs'

const DRIVERS = ['ioredis', 'redis'] as const

const claimOf = (name: string): ClaimRequest => ({
  name,
  id: `ann.${name}`,
  weight: 1,
  capacity: 1,
  ttl: 60_000,
  patience: 60_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})

/** A list without the locks of a server that is down would say that nobody holds them. */
describe.skipIf(!available('redis-cluster')).each(DRIVERS)(
  'a list of a Cluster that lost a primary, through %s',
  (driver) => {
    let cluster: RedisCluster
    beforeAll(async () => {
      cluster = await redisCluster({
        primaries: 3,
        replicas: 0,
        nodeTimeout: 1_000,
        args: ['--cluster-require-full-coverage', 'no'],
      })
    })
    afterAll(() => cluster.stop())

    it('is not shown', async () => {
      const url = cluster.url.replace('redis://', 'redis+cluster://')
      const store = await openRedisStore(url, { driver })
      const names = Array.from({ length: 30 }, (_, i) => `name ${i}`)
      for (const name of names)
        expect(await store.claim(claimOf(name), 5_000)).toMatchObject({ kind: 'held' })
      expect(await store.list({ limit: 100 }, 5_000)).toMatchObject({ names: { length: 30 } })
      await cluster.primaries[1]?.kill('SIGKILL')
      for (let look = 0; look < 5; look++) {
        expect(await store.list({ limit: 100 }, 2_000)).toMatchObject({ kind: 'unknown' })
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
      await store.close()
      const checked = await checkRedis(url, { driver }).then(
        (found) => found.filter(({ level }) => level === 'error'),
        String,
      )
      expect(checked).not.toEqual([])
    })
  },
)
