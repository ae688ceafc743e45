import { afterAll, beforeAll, describe, it } from 'vitest'

import { openRedlockStore } from 'holdfast/quorum'
import { vitestConformance } from 'holdfast/testkit'
import type { StoreModule } from 'holdfast/testkit'

import { available, redis } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { votesLeftAt } from '../stores/quorum/leftovers.ts'
import { mutexOnly } from './abilities.ts'

/** As long as the longest lease of a case. Servers are waited for longer than usual: the machine may be busy. */
const maxTtl = 120_000

/** Processes that die are the same to both drivers; so are two servers more, where each is a connection more. */
const DRIVERS = [
  { driver: 'ioredis', count: 5, processes: true },
  { driver: 'redis', count: 3, processes: false },
] as const

for (const { driver, count, processes } of DRIVERS) {
  describe.skipIf(!available('redis'))(`a quorum of ${count} Redis servers through ${driver}`, () => {
    let servers: readonly Server[]
    const url = (): string => {
      const hosts = servers.map(({ host, port }) => `${host}:${port}`)
      return `redlock://${hosts.join(',')}?setup=now&maxTtl=${maxTtl}&nodeTimeout=2000`
    }
    beforeAll(async () => void (servers = await Promise.all(Array.from({ length: count }, () => redis()))))
    afterAll(() => Promise.all(servers.map((server) => server.stop())))

    const module = (): StoreModule => ({
      url: new URL('../../dist/stores/quorum/open.js', import.meta.url).href,
      export: 'openRedlockStore',
      args: url(),
    })
    vitestConformance(
      { describe, it },
      {
        name: 'a redlock URL',
        abilities: mutexOnly,
        createStore: () => openRedlockStore(url(), { driver }),
        leftovers: async () => (await Promise.all(servers.map((server) => votesLeftAt(server)))).flat(),
        ...(processes ? { module } : {}),
      },
    )
  })
}
