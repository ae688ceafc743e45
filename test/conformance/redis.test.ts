import { afterAll, beforeAll, describe, it } from 'vitest'

import { openRedisStore } from 'holdfast/redis'
import { vitestConformance } from 'holdfast/testkit'

import { available, redis, redisCluster, sentinel } from '../../scripts/services.mjs'
import type { RedisCluster, SentinelGroup, Server } from '../../scripts/services.mjs'
import { leftoversAt } from '../stores/redis/leftovers.ts'
import { everything } from './abilities.ts'

const compiled = new URL('../../dist/stores/redis/open.js', import.meta.url).href
const module = (url: string) => ({ url: compiled, export: 'openRedisStore', args: url })

for (const driver of ['ioredis', 'redis'] as const) {
  describe.skipIf(!available('redis'))(`Redis through ${driver}`, () => {
    let server: Server
    beforeAll(async () => void (server = await redis({ args: ['--appendonly', 'yes'] })))
    afterAll(() => server.stop())

    vitestConformance(
      { describe, it },
      {
        name: 'one server',
        abilities: everything,
        createStore: () => openRedisStore(server.url, { driver }),
        leftovers: () => leftoversAt(server),
        module: () => module(server.url),
        proxied: {
          upstream: () => server,
          createStore: ({ host, port }) => openRedisStore(`redis://${host}:${port}`, { driver }),
        },
        restart: () => server.restart(),
      },
    )
  })

  describe.skipIf(!available('sentinel'))(`Redis Sentinel through ${driver}`, () => {
    let group: SentinelGroup
    const url = (): string => `redis+sentinel://${hosts(group.sentinels)}/${group.name}`
    beforeAll(async () => void (group = await sentinel()))
    afterAll(() => group.stop())

    vitestConformance(
      { describe, it },
      {
        name: 'a Sentinel group',
        abilities: everything,
        createStore: () => openRedisStore(url(), { driver }),
        leftovers: async () => leftoversAt((await group.primary()) ?? group),
        module: () => module(url()),
      },
    )
  })

  describe.skipIf(!available('redis-cluster'))(`Redis Cluster through ${driver}`, () => {
    let cluster: RedisCluster
    const url = (): string => `redis+cluster://${hosts(cluster.primaries)}`
    beforeAll(async () => void (cluster = await redisCluster()))
    afterAll(() => cluster.stop())

    vitestConformance(
      { describe, it },
      {
        name: 'a Cluster',
        abilities: everything,
        // Whether somebody listens cannot be told in a Cluster: a dead waiter is granted the lock, and keeps it for its
        // patience; then the next one's sign of life finds that out.
        grace: 2_500,
        createStore: () => openRedisStore(url(), { driver }),
        leftovers: async () => (await Promise.all(cluster.primaries.map((node) => leftoversAt(node)))).flat(),
        module: () => module(url()),
      },
    )
  })
}

function hosts(servers: readonly Server[]): string {
  return servers.map(({ host, port }) => `${host}:${port}`).join(',')
}
