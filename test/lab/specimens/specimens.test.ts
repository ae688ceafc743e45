import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, clockShim, mariadb, redis, redisCommand, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { RunRecord } from '../../../src/lab/record.ts'
import { judge } from '../../../src/lab/record.ts'
import { exitCode, tally } from '../../../src/lab/report/tally.ts'
import { redisPair, runSpecimen, SPECIMENS } from '../../../src/lab/specimens/index.ts'
import type { Servers, Specimen } from '../../../src/lab/specimens/index.ts'

const started: Server[] = []
const own = async (server: Promise<Server>): Promise<Server> => {
  started.push(await server)
  return server
}

const groups: Readonly<Record<string, { there: boolean; start: () => Promise<Servers> }>> = {
  redis: { there: available('redis'), start: async () => ({ redis: await own(redis()) }) },
  redisPair: {
    there: available('redis'),
    start: () => Promise.resolve({ redisPair: () => redisPair((options) => redis(options)) }),
  },
  zookeeper: { there: available('zookeeper'), start: async () => ({ zookeeper: await own(zookeeper()) }) },
  mysql: {
    there: available('mariadb'),
    start: async () => ({ mysql: await own(mariadb()) }),
  },
}

afterAll(() => Promise.all(started.map((server) => server.stop())))

/** Which checks found it broken, and whether any was surprised by that. */
const caught = ({ verdicts }: RunRecord) => ({
  by: verdicts.filter(({ seen }) => seen === 'broke').map(({ check }) => check),
  surprises: verdicts.filter((one) => judge(one) !== 'as expected'),
})

for (const [needs, { there, start }] of Object.entries(groups)) {
  describe.skipIf(!there)(`Specimens on ${needs}`, () => {
    let servers: Servers
    beforeAll(async () => void (servers = await start()))

    const mine = SPECIMENS.filter((specimen) => specimen.needs === needs)
    const flawed = mine.map((specimen): [string, string, Specimen] => [
      specimen.title,
      specimen.caughtBy === undefined ? 'holds' : `is caught by ${specimen.caughtBy}`,
      specimen,
    ])
    it.each(flawed)('%s %s', async (_title, _how, specimen) => {
      const record = await runSpecimen(specimen, 'flawed', servers)
      const { caughtBy } = specimen
      expect(caught(record)).toEqual({ by: caughtBy === undefined ? [] : [caughtBy], surprises: [] })
      expect(record.timeline.length).toBeGreaterThan(1)
    })

    const ours = mine.flatMap((specimen): [string, string, Specimen][] => {
      if (specimen.ours === undefined) return []
      const how = specimen.ours.breaks === undefined ? 'holds' : 'breaks as its table says'
      return [[specimen.title, how, specimen]]
    })
    it.each(ours)('%s: in the same scenario holdfast %s', async (_title, _how, specimen) => {
      const record = await runSpecimen(specimen, 'ours', servers)
      expect(caught(record)).toEqual({ by: specimen.ours?.breaks ?? [], surprises: [] })
      // What catches the specimen was looked at here too.
      expect(record.verdicts.map(({ check }) => check)).toContain(specimen.caughtBy)
    })
  })
}

describe.skipIf(!available('redis') || !available('cc'))('In the scenario of SETNX, then EXPIRE', () => {
  it('a holdfast whose leases never end would be caught: there is a lock when its holder dies', async () => {
    const clock = await clockShim()
    await using server = await redis({ env: clock.env })
    const specimen = SPECIMENS.find(({ id }) => id === 'setnx-then-expire')
    if (specimen === undefined) throw new Error('there is no such specimen')
    const run = runSpecimen(specimen, 'ours', { redis: server })
    // As soon as there is a claim, the server's time stands still for an hour, and its lease with it.
    await vi.waitUntil(async () => /:seat(?!:before)/.test(String(await redisCommand(server, 'KEYS', '*'))), {
      timeout: 10_000,
      interval: 5,
    })
    clock.jump(-3_600_000)
    const record = await run.finally(() => clock.dispose())
    expect(caught(record).by).toEqual(['liveness'])
    expect(exitCode(tally([record]))).toBe(1)
  })
})

it('A specimen whose server is missing is reported as not run', async () => {
  const [specimen] = SPECIMENS
  if (specimen === undefined) throw new Error('there are no specimens')
  const { verdicts } = await runSpecimen(specimen, 'flawed', {})
  expect(verdicts).toMatchObject([{ seen: 'not run', why: 'there is no redis on this machine' }])
})
