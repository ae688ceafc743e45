import { describe, expect, it } from 'vitest'

import { judge } from '../../../src/lab/record.ts'
import { scenarios, survey } from '../../../src/lab/sim/index.ts'
import type { Scenario, SurveyProgress } from '../../../src/lab/sim/index.ts'

const named = (...ids: string[]): Scenario[] => scenarios.filter(({ id }) => ids.includes(id))

describe('a survey of many seeds', () => {
  it('takes scenarios in turns, tells how far it is, and says of each what all seeds showed', async () => {
    const heard: SurveyProgress[] = []
    const rows = await survey({
      seeds: 40,
      scenarios: named('redis/restart-none', 'redis/restart-always'),
      onProgress: (progress) => heard.push(progress),
    })
    expect(rows.map(({ scenario, runs }) => [scenario.id, runs])).toEqual([
      ['redis/restart-always', 20],
      ['redis/restart-none', 20],
    ])
    expect(heard).toHaveLength(40)
    expect(heard.at(-1)).toMatchObject({ done: 40, of: 40, unexpected: 0 })
    const [kept, lost] = rows.map(({ verdicts }) => verdicts.find(({ check }) => check === 'exclusivity'))
    expect(kept).toMatchObject({ expected: 'holds', seen: 'held' })
    expect(lost).toMatchObject({ expected: 'breaks', seen: 'broke' })
  })

  it('plays seeds that are always the same before fresh ones, and counts logs that differ', async () => {
    const scenarios = named('redis/calm')
    const [row] = await survey({ seeds: 2, firstSeed: 70, fixed: [5, 70], scenarios })
    // Seed 70 came twice, and showed the same twice.
    expect(row).toMatchObject({ runs: 4, distinct: 3 })
  })

  it('shows what should hold and did not, as an example and among the unexpected', async () => {
    const [honest] = named('redis/restart-none')
    const boast: Scenario = { ...(honest as Scenario), mustBreak: [] }
    const expected = { ...boast.expected, exclusivity: 'holds' as const }
    const [row] = await survey({ seeds: 3, scenarios: [{ ...boast, expected }] })
    expect(row?.unexpected.length).toBeGreaterThan(0)
    expect(row?.example).toBe(row?.unexpected[0])
    expect(row?.verdicts.filter((verdict) => judge(verdict) === 'unexpected')).toHaveLength(1)
  })

  it('does not demand that a few seeds break what must be seen to break', async () => {
    const [row] = await survey({ seeds: 1, scenarios: named('redis/failover') })
    expect(row?.verdicts.some(({ expected }) => expected === 'breaks')).toBe(false)
  })
})
