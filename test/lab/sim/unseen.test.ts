import { afterEach, describe, expect, it, vi } from 'vitest'

import { pileOf } from '../../../src/lab/report/tally.ts'
import { Chapter } from '../../../src/lab/sim/diary.ts'
import { scenarios, survey } from '../../../src/lab/sim/index.ts'
import { Resource } from '../../../src/lab/sim/resource.ts'

afterEach(() => vi.restoreAllMocks())

describe('A check of the simulation that never has anything to look at', () => {
  const verdicts = async (id: string, ...checks: string[]) => {
    const own = scenarios.filter((one) => one.id === id)
    const [row] = await survey({ seeds: 8, scenarios: own })
    return row?.verdicts.filter(({ check }) => checks.includes(check))
  }
  const why = 'there was nothing to look at in any of 8 seeds'

  it('was not run where nobody wrote', async () => {
    vi.spyOn(Resource.prototype, 'write').mockReturnValue(false)
    const found = await verdicts('claim-queue/network', 'lost update', 'unfenced resource')
    expect(found).toMatchObject([
      { seen: 'not run', why },
      { seen: 'not run', why },
    ])
    expect(found?.map(pileOf)).toEqual(['notRun', 'notRun'])
  })

  it('was not run where no lease was lost, nor was one in a calm world', async () => {
    vi.spyOn(Chapter.prototype, 'aborted').mockReturnValue()
    expect(await verdicts('claim-queue/processes', 'abort latency')).toMatchObject([{ seen: 'not run', why }])
    expect(await verdicts('claim-queue/calm', 'abort latency')).toEqual([])
  })

  it('is run where it has', async () => {
    const checks = ['lost update', 'unfenced resource', 'abort latency', 'messages']
    const found = await verdicts('redis/processes', ...checks)
    expect(found?.map(({ seen }) => seen)).toEqual(['held', 'held', 'held', 'held'])
  })
})
