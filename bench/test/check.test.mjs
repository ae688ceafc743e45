import assert from 'node:assert/strict'
import { test } from 'node:test'

import { CONTESTANTS } from '../contestants/index.mjs'
import { checkTargets, judge, readTargets } from '../lib/check.mjs'
import { METRICS } from '../report/metrics.mjs'
import { WORKLOADS } from '../workloads/index.mjs'
import { resultWith } from './result.mjs'

const target = {
  say: 'x',
  workload: 'w1',
  store: 'redis',
  variant: 'alone',
  ours: 'ours',
  metric: 'rate',
  margin: 0.1,
}

const results = [
  resultWith({
    limit: { role: 'limit', rates: [100, 200] },
    ours: { role: 'ours', rates: [90, 190] },
    good: { role: 'peer', rates: [80, 80] },
    cheat: { role: 'peer', rates: [9000, 9000], lost: 5 },
    elsewhere: { role: 'peer', rates: [5000, 5000], ownStore: true },
  }),
]

await test('a ratio to the raw limit is taken round by round', () => {
  const { verdict, value } = judge({ ...target, against: 'raw', atLeast: 0.9 }, results)
  assert.equal(verdict, 'met')
  assert.equal(value.toFixed(3), '0.925')
})

await test('the best peer is one that lost nothing and uses the same store', () => {
  assert.equal(judge({ ...target, against: 'best peer', atLeast: 1 }, results).value, 140 / 80)
})

await test('noise may take off the margin and no more', () => {
  const wanting = (atLeast) => judge({ ...target, against: 'good', atLeast }, results).verdict
  assert.equal(wanting(1.75), 'met')
  assert.equal(wanting(1.9), 'within noise')
  assert.equal(wanting(2.5), 'missed')
})

await test('an upper bound of zero allows nothing', () => {
  const wish = { ...target, ours: 'cheat', metric: 'lost', atMost: 0, margin: 0 }
  assert.equal(judge(wish, results).verdict, 'missed')
})

await test('what was not run is not called missed', () => {
  const { missed, table } = checkTargets([{ ...target, workload: 'w4', atLeast: 1 }], { results })
  assert.equal(missed, 0)
  assert.equal(table.rows[0].cells.at(-1), 'not run')
})

await test('every checked-in target names things that exist', () => {
  for (const one of readTargets()) {
    const workload = WORKLOADS.find(({ id }) => id === one.workload)
    assert.ok(workload?.stores.includes(one.store), one.say)
    const variants = workload.variants(one.store, workload.plans.full).map(({ id }) => id)
    assert.ok(variants.includes(one.variant), one.say)
    const ours = CONTESTANTS.find(({ id }) => id === one.ours)
    assert.ok(ours?.store === one.store && workload.takes(ours), one.say)
    assert.ok(METRICS[one.metric] !== undefined, one.say)
    assert.ok(one.atLeast !== undefined || one.atMost !== undefined, one.say)
    if (one.against !== undefined && !['raw', 'best peer'].includes(one.against)) {
      assert.ok(
        CONTESTANTS.some(({ id }) => id === one.against),
        one.say,
      )
    }
  }
})
