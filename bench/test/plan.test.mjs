import assert from 'node:assert/strict'
import { test } from 'node:test'

import { CONTESTANTS } from '../contestants/index.mjs'
import { readArgs } from '../lib/args.mjs'
import { makePlan } from '../lib/plan.mjs'
import { selfTimes } from '../lib/profile.mjs'

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

await test('what is not run is said', () => {
  assert.deepEqual(
    makePlan(readArgs(['--workload', 'w7'])).notRun.map(({ id }) => id),
    ['w7'],
  )
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
