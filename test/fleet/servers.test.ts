import { describe, expect, it } from 'vitest'

import type * as LockServer from 'holdfast/server'

import { available, mariadb, postgres, redis, zookeeper } from '../../scripts/services.mjs'
import type { Server, Service } from '../../scripts/services.mjs'
import { BUILDS, problemsOfFleet } from './one-fleet.ts'
import type { Builds, Place } from './one-fleet.ts'

const SERVERS: readonly (readonly [Service, () => Promise<Server>])[] = [
  ['redis', redis],
  ['mariadb', mariadb],
  ['postgres', postgres],
  ['zookeeper', zookeeper],
]
const SECONDS = { timeout: 120_000 }

/**
 * A fleet is updated one process after the other, and a lock outlives the process that took it: what one version writes, another
 * reads, renews, grants from and deletes. docs/adr/0005-layouts.md says how layouts may change.
 */
describe('processes of an earlier build and of the present one', () => {
  for (const [service, start] of SERVERS)
    it.skipIf(!available(service))(`share the locks of ${service}`, SECONDS, async () => {
      const place = async (): Promise<Place> => {
        const server = await start()
        return { url: server.url, end: () => server.stop() }
      }
      expect(await problemsOfFleet(place)).toEqual([])
    })

  it.skipIf(!available('redis'))('share the locks of a quorum', SECONDS, async () => {
    const place = async (): Promise<Place> => {
      const servers = await Promise.all([redis(), redis(), redis()])
      const addresses = servers.map(({ host, port }) => `${host}:${port}`).join(',')
      return {
        url: `redlock://${addresses}?maxTtl=5000&setup=now`,
        end: () => Promise.all(servers.map((server) => server.stop())),
      }
    }
    expect(await problemsOfFleet(place)).toEqual([])
  })

  it.each(BUILDS)('share the locks of a lock server of the %s one', SECONDS, async (build) => {
    const place = async (builds: Builds): Promise<Place> => {
      const { startServer } = (await import(`${builds[build]}/server/index.js`)) as typeof LockServer
      const server = await startServer({ listen: '127.0.0.1:0', state: null })
      return { url: server.url, end: async () => server.close({ grace: 50 }) }
    }
    expect(await problemsOfFleet(place)).toEqual([])
  })
})
