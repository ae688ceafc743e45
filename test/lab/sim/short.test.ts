import { randomInt } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import { judge } from '../../../src/lab/record.ts'
import { explain, scenarios, shrink, simulate } from '../../../src/lab/sim/index.ts'
import type { Scenario } from '../../../src/lab/sim/index.ts'

/** Seeds of each scenario: a few that are always the same, and one that nobody has seen. simulation.test.ts has more. */
const FIXED = [1001, 1002]
const FRESH = Number(process.env.SIM_FIRST ?? randomInt(2 ** 31))

/** What broke and should not, in words. */
async function surprise(scenario: Scenario, seed: number): Promise<string | undefined> {
  const run = await simulate({ scenario, seed })
  const broken = run.verdicts.find((verdict) => judge(verdict) === 'unexpected')
  if (broken === undefined) return undefined
  return explain(await shrink({ scenario, seed, faults: run.plan }, broken.check))
}

describe(`a short simulation of every scenario, seeds ${FIXED.join(', ')} and ${FRESH}`, () => {
  it.each(scenarios.map((scenario) => [scenario.id, scenario] as const))('%s', async (_, scenario) => {
    for (const seed of [...FIXED, FRESH]) expect(await surprise(scenario, seed)).toBeUndefined()
  })
})
