import assert from 'node:assert/strict'
import { test } from 'node:test'

import { CONTESTANTS } from '../contestants/index.mjs'
import { readArgs } from '../lib/args.mjs'
import { readTargets } from '../lib/check.mjs'
import { makePlan } from '../lib/plan.mjs'
import { selfTimes } from '../lib/profile.mjs'
import { WORKLOADS } from '../workloads/index.mjs'

await test('ids are unique', () => {
  assert.equal(new Set(CONTESTANTS.map(({ id }) => id)).size, CONTESTANTS.length)
})

await test('a name that nothing is called is refused instead of giving an empty result', () => {
  assert.throws(() => makePlan(readArgs(['--workload', 'w99'])), /w99/)
  assert.throws(() => makePlan(readArgs(['--only', 'redlok'])), /redlok/)
  assert.throws(() => makePlan(readArgs(['--store', 'paper'])), /paper/)
})

await test('the raw limit runs along whoever is chosen', () => {
  const { bouts } = makePlan(readArgs(['--workload', 'w1', '--only', 'redlock', '--store', 'redis']))
  assert.deepEqual(new Set(bouts[0].contestants.map(({ family }) => family)), new Set(['raw', 'redlock']))
})

await test('in a hurry every peer runs once', () => {
  const { bouts } = makePlan(readArgs(['--workload', 'w3', '--store', 'redis', '--quick']))
  const peers = bouts[0].contestants.filter(({ role }) => role === 'peer').map(({ family }) => family)
  assert.equal(new Set(peers).size, peers.length)
})

await test('what was made for one workload runs in no other', () => {
  const { bouts } = makePlan(readArgs(['--store', 'zookeeper']))
  const ran = new Map(
    bouts.map(({ workload, contestants }) => [workload.id, contestants.map(({ id }) => id)]),
  )
  assert.deepEqual(ran.get('w16'), [
    'zookeeper-client',
    'zookeeper-client-one-by-one',
    'node-zookeeper-client',
  ])
  for (const [id, ids] of ran) if (id !== 'w16') assert.ok(!ids.includes('zookeeper-client'), id)
  assert.ok(ran.get('w1').includes('raw-zookeeper'))
})

await test('votes that split are for those who vote, as they come, and for no other workload', () => {
  const { bouts } = makePlan(readArgs(['--store', 'redlock']))
  const ran = new Map(
    bouts.map(({ workload, contestants }) => [workload.id, contestants.map(({ id }) => id)]),
  )
  assert.deepEqual(ran.get('w17'), ['holdfast-split', 'redlock-split', 'sesamecare-split'])
  assert.ok(ran.get('w7').every((id) => !id.endsWith('-split')))
})

await test('in a hurry only memory, Redis and SQLite are measured: other servers take long to start', () => {
  const { bouts } = makePlan(readArgs(['--quick']))
  const stores = new Set(bouts.map(({ store }) => store))
  assert.deepEqual(stores, new Set(['memory', 'redis', 'sqlite']))
})

await test('every store has its raw limit in the first workload', () => {
  const { bouts } = makePlan(readArgs(['--workload', 'w1']))
  for (const { store, contestants } of bouts)
    assert.ok(
      contestants.some(({ role }) => role === 'limit'),
      store,
    )
})

await test('every target names a workload, a variant and a contestant that exist', () => {
  const ids = new Set(CONTESTANTS.map(({ id }) => id))
  for (const { say, workload, store, variant, ours, against } of readTargets()) {
    const found = WORKLOADS.find(({ id }) => id === workload)
    assert.ok(found?.stores.includes(store), say)
    assert.ok(
      found.variants(store, found.plans.full).some(({ id }) => id === variant),
      say,
    )
    for (const id of [ours, against ?? 'raw'])
      assert.ok(['raw', 'best peer'].includes(id) || ids.has(id), `${say}: ${id}`)
  }
})

await test('a profile is summed by function, without the idle time', () => {
  const frame = (functionName) => ({ functionName, url: '', lineNumber: 0 })
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('(idle)') },
      { id: 2, callFrame: frame('work') },
      { id: 3, callFrame: frame('rest') },
    ],
    samples: [1, 2, 2, 3],
    timeDeltas: [5000, 3000, 3000, 2000],
  }
  assert.deepEqual(
    selfTimes([profile], 20).rows.map(({ cells }) => cells.map((cell) => cell.trim())),
    [
      ['work', '6.0', '75.0 %'],
      ['rest', '2.0', '25.0 %'],
    ],
  )
})
