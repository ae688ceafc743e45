import { describe, expect, it, vi } from 'vitest'

import { judge } from '../../../src/lab/record.ts'
import { explain, replay, scenarios, shrink, simulate, stepped } from '../../../src/lab/sim/index.ts'
import type { Scenario } from '../../../src/lab/sim/index.ts'

/** More of them: HOLDFAST_TEST=full, or SIM_SEEDS=1000 npx vitest run test/lab/sim/simulation.test.ts */
const RUNS = process.env.HOLDFAST_TEST === 'full' ? 21_000 : 1050
const SEEDS = Number(process.env.SIM_SEEDS ?? Math.ceil(RUNS / scenarios.length))
/** The same ones each time; short.test.ts and `npm run lab` have fresh ones. */
const FIXED = Math.ceil(SEEDS / 10)
const FIRST = Number(process.env.SIM_FIRST ?? 687_429_168)
const BATCH_TIMEOUT = 120_000 + SEEDS * 500

/** Runs all seeds of a scenario. Returns how often each check broke. */
async function sweep(scenario: Scenario): Promise<Map<string, number>> {
  const broke = new Map<string, number>()
  for (let round = 0; round < SEEDS; round++) {
    const seed = round < FIXED ? round + 1 : FIRST + round - FIXED
    const run = await simulate({ scenario, seed })
    for (const verdict of run.verdicts) {
      if (verdict.seen === 'broke') broke.set(verdict.check, (broke.get(verdict.check) ?? 0) + 1)
      if (judge(verdict) === 'unexpected') {
        throw new Error(explain(await shrink({ scenario, seed, faults: run.plan }, verdict.check)))
      }
      // Runs are small enough for the search to come to an end.
      expect({ seed, check: verdict.check, seen: verdict.seen }).not.toMatchObject({ seen: 'unknown' })
    }
  }
  return broke
}

describe(`the real runtime on simulated stores, ${SEEDS} seeds each, the first ${FIXED} and others from ${FIRST} on`, () => {
  for (const scenario of scenarios) {
    const { id, mustBreak } = scenario
    const promise =
      mustBreak.length === 0 ? 'keeps what it promises' : `is seen to break ${mustBreak.join(', ')}`
    it(`${id} ${promise}`, { timeout: BATCH_TIMEOUT }, async () => {
      const broke = await sweep(scenario)
      for (const check of mustBreak)
        expect({ check, broke: broke.get(check) ?? 0 }).not.toMatchObject({ broke: 0 })
    })
  }
})

describe('a simulated run', () => {
  it('is the same for the same seed, in every store, and another for another', async () => {
    for (const scenario of scenarios) {
      const [once, again, other] = [
        await simulate({ scenario, seed: 7 }),
        await simulate({ scenario, seed: 7 }),
        await simulate({ scenario, seed: 8 }),
      ]
      expect(again.hash).toBe(once.hash)
      expect(again.log).toEqual(once.log)
      expect(other.hash).not.toBe(once.hash)
    }
  })

  it('does not take a long program that is not over yet for noise', async () => {
    const { verdicts } = await simulate({ scenario: 'claim-queue/rates', seed: 851_566_269 })
    expect(verdicts.filter(({ seen }) => seen === 'broke')).toEqual([])
  })

  it('is the same when its faults are given instead of made from the seed, and can be stepped', async () => {
    const run = await simulate({ scenario: 'claim-queue/everything', seed: 3 })
    const again = await replay({ scenario: 'claim-queue/everything', seed: 3, faults: run.plan })
    expect(again.hash).toBe(run.hash)
    expect(stepped(again, 10)).toEqual(run.log.slice(0, 10))
  })

  it('does not depend on when garbage is collected', async () => {
    const watched = vi.spyOn(FinalizationRegistry.prototype, 'register')
    await simulate({ scenario: 'claim-queue/processes', seed: 3 })
    expect(watched).not.toHaveBeenCalled()
    watched.mockRestore()
  })

  it('really happens: locks are taken, renewed, downgraded, lost and written under', async () => {
    const runs = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((seed) => simulate({ scenario: 'claim-queue/everything', seed })),
    )
    const kinds = new Set(runs.flatMap(({ timeline }) => timeline.map(({ kind }) => kind)))
    for (const kind of ['waiting', 'acquired', 'renewed', 'downgraded', 'lost', 'released', 'write'])
      expect(kinds).toContain(kind)
  })

  it('that breaks is shrunk to the faults that it needs', { timeout: 60_000 }, async () => {
    const run = await simulate({ scenario: 'redis/restart-none', seed: 1 })
    const found = await shrink({ scenario: 'redis/restart-none', seed: 1, faults: run.plan }, 'exclusivity')
    expect(found.faults.length).toBeLessThan(run.plan.length)
    expect(found.faults.length).toBeGreaterThan(0)
    for (const fault of found.faults) {
      const rest = found.faults.filter((other) => other !== fault)
      const { verdicts } = await replay({ scenario: 'redis/restart-none', seed: 1, faults: rest })
      expect(verdicts.find(({ check }) => check === 'exclusivity')?.seen).toBe('held')
    }
    expect(explain(found)).toContain('seed 1')
  })
})
