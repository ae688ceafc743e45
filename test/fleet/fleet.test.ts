import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { open } from 'holdfast'
import { checkExclusivity, checkTokenOrder } from 'holdfast/testkit'

import { earlierBuild } from '../../scripts/earlier-build.mjs'
import { available, mariadb, postgres, redis, zookeeper } from '../../scripts/services.mjs'
import type { Server, Service } from '../../scripts/services.mjs'
import { Fleet, handOvers, PRESENT } from './fleet.ts'

const BUILDS = ['earlier', 'present'] as const
const RUN_MS = 10_000
const KILL_EVERY_MS = 1_100

const SERVERS: readonly (readonly [Service, () => Promise<Server>])[] = [
  ['redis', redis],
  ['mariadb', mariadb],
  ['postgres', postgres],
  ['zookeeper', zookeeper],
]

interface Place {
  readonly url: string
  readonly end: () => unknown
}

/** A lock server of either build. */
async function lockServer(dist: string): Promise<Place> {
  const { startServer } = (await import(`${dist}/server/index.js`)) as typeof import('holdfast/server')
  const server = await startServer({ listen: '127.0.0.1:0', state: null })
  return { url: server.url, end: async () => server.close({ grace: 50 }) }
}

/**
 * A fleet is updated one process after the other, and a lock outlives the process that took it: what one version writes, another
 * reads, renews, grants from and deletes. docs/adr/0005-layouts.md says how layouts may change.
 */
describe('processes of an earlier build and of the present one', () => {
  let builds: { earlier: string; present: string }
  let remove: () => void
  beforeAll(() => {
    const earlier = earlierBuild()
    remove = earlier.remove
    builds = { earlier: earlier.dist, present: PRESENT }
  })
  afterAll(() => remove())

  async function expectOneFleet({ url, end }: Place): Promise<void> {
    const fleet = new Fleet(builds, url)
    for (const build of [...BUILDS, ...BUILDS]) fleet.start(build)
    const slower = (): number => Math.min(...BUILDS.map((build) => fleet.grants()[build] ?? 0))
    await expect.poll(slower, { timeout: 30_000 }).toBeGreaterThan(5)
    await fleet.run(RUN_MS, KILL_EVERY_MS)
    const enough = slower() + 10
    await expect.poll(slower, { timeout: 60_000 }).toBeGreaterThan(enough)
    const { holds, complaints } = await fleet.stop()
    expect(complaints).toEqual([])
    expect(checkExclusivity(holds)).toEqual([])
    expect(checkTokenOrder(holds)).toEqual([])
    expect(handOvers(holds)).toMatchObject({
      'earlier to present': expect.any(Number) as number,
      'present to earlier': expect.any(Number) as number,
    })
    // Nothing is left of anybody, as soon as the leases of the killed have ended.
    const holdfast = await open(url)
    const left = async (): Promise<readonly string[]> => (await holdfast.list({ prefix: 'fleet:' })).names
    await expect.poll(left, { timeout: 20_000 }).toEqual([])
    await holdfast.close()
    await end()
  }

  it.each(SERVERS)('share the locks of %s', async (service, start) => {
    if (!available(service)) return
    const server = await start()
    await expectOneFleet({ url: server.url, end: () => server.stop() })
  })

  it('share the locks of an SQLite file', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'))
    const end = (): void => rmSync(dir, { recursive: true, force: true })
    await expectOneFleet({ url: `sqlite:${join(dir, 'locks.db')}`, end })
  })

  it.each(BUILDS)('share the locks of a lock server of the %s one', async (build) => {
    await expectOneFleet(await lockServer(builds[build]))
  })
})
