import { describe, expect, it, vi } from 'vitest'

import { scenarios, survey } from '../../../src/lab/sim/index.ts'

const silent = vi.hoisted(() => ({ kinds: new Set<string>() }))

vi.mock(import('../../../src/lab/sim/nemesis.ts'), async (original) => {
  const { unleash } = await original()
  return {
    unleash: (faults, victims) => {
      for (const fault of faults) victims.log('nemesis', fault.kind)
      unleash(
        faults.filter(({ kind }) => !silent.kinds.has(kind)),
        victims,
      )
    },
  }
})

describe('The faults of a simulated scenario', () => {
  const verdict = async (): Promise<unknown> => {
    const own = scenarios.filter(({ id }) => id === 'claim-queue/processes')
    const [row] = await survey({ seeds: 60, scenarios: own })
    return row?.verdicts.find(({ check }) => check === 'faults')
  }

  it('are seen to do something, each kind of them', async () => {
    silent.kinds.clear()
    expect(await verdict()).toEqual({ check: 'faults', expected: 'holds', seen: 'held' })
  })

  it('that do nothing do not let everything hold', async () => {
    silent.kinds = new Set(['kill', 'suspend'])
    expect(await verdict()).toMatchObject({
      seen: 'broke',
      why: 'nothing would have gone another way without suspend, kill',
    })
  })
})
