import { fileURLToPath } from 'node:url'

import { afterEach, describe, expect, it } from 'vitest'

import { checkExclusivity, checkTokenOrder } from 'holdfast/testkit'

import { available, redis } from '../../../scripts/services.mjs'
import { Fleet, PRESENT } from '../../fleet/fleet.ts'

const MEMBER = fileURLToPath(new URL('crowd-member.mjs', import.meta.url))

/** `HOLDFAST_CROWD=10x500x40000`: so many processes with so many tasks each, for so many milliseconds. */
const [PROCESSES = 4, TASKS = 50, RUN_MS = 1_500] =
  (process.env['HOLDFAST_CROWD'] ?? '').match(/\d+/g)?.map(Number) ?? []
/** Sixty in forty seconds. */
const KILL_EVERY_MS = 660

/** Against the built package, as the tests in test/process. */
describe.skipIf(!available('redis'))(
  'a crowd of processes with many tasks each, of which some are killed',
  () => {
    let fleet: Fleet | undefined
    afterEach(() => fleet?.kill())

    it('has one holder at a time, and tokens that grow', { timeout: RUN_MS * 2 + 60_000 }, async () => {
      await using server = await redis()
      fleet = new Fleet({ crowd: PRESENT }, server.url, {
        member: MEMBER,
        env: { CROWD_TASKS: String(TASKS) },
      })
      for (let i = 0; i < PROCESSES; i++) fleet.start('crowd')
      const grants = (): number => fleet?.grants()['crowd'] ?? 0
      await expect.poll(grants, { timeout: 30_000, interval: 20 }).toBeGreaterThan(TASKS)
      await fleet.run(RUN_MS, KILL_EVERY_MS)
      const before = grants()
      await expect.poll(grants, { timeout: 30_000, interval: 20 }).toBeGreaterThan(before + TASKS)
      const { holds, complaints } = await fleet.stop()
      expect([...complaints, ...checkExclusivity(holds), ...checkTokenOrder(holds)]).toEqual([])
      if (process.env['HOLDFAST_CROWD'] !== undefined)
        console.log(grants(), 'grants; longest wait', fleet.longestWait(), 'ms')
    })
  },
)
