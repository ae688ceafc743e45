import { describe, expect, it } from 'vitest'

import { judgeEvidence, nemesis } from '../../../src/lab/live/index.ts'
import type { Evidence } from '../../../src/lab/live/index.ts'
import type { RunRecord } from '../../../src/lab/record.ts'
import { verdictTables } from '../../../src/lab/report/verdicts.ts'
import { runLine } from '../../../src/lab/report/summary.ts'
import { exitCode, tally } from '../../../src/lab/report/tally.ts'
import { Script } from './evidence.ts'

const none = nemesis('none')
if (none === undefined) throw new Error('there is no fault "none"')

/** Clients of a library without tokens: the later one has the smaller number. */
function withoutTokens(overlap: boolean): Evidence {
  const script = new Script()
  script.section('a', 1, 10, 60, 2n)
  script.section('b', 20, overlap ? 40 : 70, 90, 1n)
  const evidence = script.evidence([none as NonNullable<typeof none>])
  return { ...evidence, settings: { ...evidence.settings, tokens: false } }
}

describe('A library that is not ours', () => {
  it('is not asked for the order of tokens that it does not have', () => {
    const checks = judgeEvidence(withoutTokens(false)).verdicts.filter(({ seen }) => seen === 'broke')
    expect(checks).toEqual([])
  })

  it('is seen to have two holders, also by the search for an order of its calls', () => {
    const broke = judgeEvidence(withoutTokens(true)).verdicts.filter(({ seen }) => seen === 'broke')
    expect(broke.map(({ check }) => check)).toEqual(['exclusivity', 'linearizability'])
  })

  it('is told of without a word about promises, and is no failure of ours', () => {
    const judged = judgeEvidence(withoutTokens(true))
    const verdicts = judged.verdicts.map((verdict) => ({ ...verdict, expected: 'not asked' as const }))
    const about = {
      id: 'others/x/none',
      title: 'X: nothing happens',
      store: 'X',
      fault: 'none',
      durationMs: 1,
    }
    const record: RunRecord = { ...about, ...judged, verdicts, clients: [], faults: [], timeline: [] }
    expect(runLine(record)).toBe('X: nothing happens: broke: exclusivity, linearizability')
    expect(verdictTables([record])).not.toContain('as expected')
    expect(exitCode(tally([{ ...record, verdicts: verdicts.filter(({ seen }) => seen === 'broke') }]))).toBe(
      0,
    )
  })
})
