import { describe, expect, it } from 'vitest'

import { askPorcupine, hasGo, porcupine, withSecondOpinion } from '../../../lab/porcupine.mjs'
import type { CallHistory } from '../../../lab/porcupine.mjs'
import { ALL } from '../../../src/core/contract.ts'
import { MODELS } from '../../../src/lab/live/checks/safety.ts'
import { judgeEvidence, nemesis } from '../../../src/lab/live/index.ts'
import type { RunRecord } from '../../../src/lab/record.ts'
import { checkLinearizability } from '../../../src/testkit/index.ts'
import type { Operation } from '../../../src/testkit/index.ts'
import { Random } from '../../../src/testkit/random.ts'
import { Script } from '../checkers/evidence.ts'

/** Its module comes from a proxy, which is not always at hand. */
const there = hasGo() && (await porcupine().then(Boolean, () => false))

const KINDS = ['mutex', 'read-write', 'semaphore'] as const

/** A few calls of a few owners at random times: right and wrong ones, and some whose end nobody knows. */
function randomHistory(seed: number): CallHistory {
  const random = new Random(seed)
  const kind = random.pick(KINDS)
  const capacity = kind === 'mutex' ? 1 : kind === 'semaphore' ? 2 : ALL
  const calls: Operation[] = []
  const owners = 2 + random.below(4)
  for (let owner = 0; owner < owners; owner += 1) {
    const at = random.below(40)
    const weight = kind === 'read-write' && random.next() < 0.5 ? ALL : 1
    const common = { process: `p${owner}`, name: 'n', owner: `p${owner}#1`, capacity, weight }
    const token = BigInt(1 + at + random.below(12))
    const call = (action: Operation['action'], from: number, unknown: number): Operation => ({
      ...common,
      action,
      token,
      call: BigInt(from),
      end: random.next() < unknown ? undefined : BigInt(from + random.below(12)),
    })
    calls.push(call('acquire', at, 0), call('release', at + 8 + random.below(15), 0.3))
  }
  return { id: String(seed), kind, calls }
}

describe.skipIf(!there)('Porcupine, a checker that is not ours,', () => {
  it('says the same of 400 random histories', { timeout: 120_000 }, async () => {
    const histories = Array.from({ length: 400 }, (_, seed) => randomHistory(seed + 1))
    const ours = histories.map(({ kind, calls }) => checkLinearizability(calls, MODELS[kind]).verdict)
    expect(await askPorcupine(histories)).toEqual(ours)
    for (const seen of ['held', 'broke'] as const)
      expect(ours.filter((verdict) => verdict === seen).length).toBeGreaterThan(40)
  })

  it('is asked about a run, and a difference is a finding', async () => {
    const script = new Script()
    script.turns(10, 20)
    const none = nemesis('none')
    const evidence = script.evidence(none === undefined ? [] : [none])
    const record: RunRecord = {
      id: 'live/x/none',
      title: '',
      store: 'x',
      fault: 'none',
      durationMs: 0,
      clients: [],
      faults: [],
      timeline: [],
      ...judgeEvidence(evidence),
      evidence,
    }
    const last = async (one: RunRecord) => (await withSecondOpinion(one)).verdicts.at(-1)
    expect(await last(record)).toMatchObject({ check: 'second opinion', seen: 'held' })
    const verdicts = record.verdicts.map((one) =>
      one.check === 'linearizability' ? { ...one, seen: 'broke' as const } : one,
    )
    expect(await last({ ...record, verdicts })).toMatchObject({
      seen: 'broke',
      why: 'Porcupine says "held" of the order of calls, the lab "broke"',
    })
  })
})
