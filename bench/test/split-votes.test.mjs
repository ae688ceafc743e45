import assert from 'node:assert/strict'
import { test } from 'node:test'

import { metricsOf } from '../workloads/w17-split-votes.mjs'

const race = (one, all, winner, lost = 0) => ({ one, all, winner, attempts: 3 * winner, lost })

await test('a race is split when the first one to hold the lock had to ask twice', () => {
  const { one, all } = metricsOf({ races: [race(2, 9, 1), race(4, 11, 2), race(6, 13, 2), race(8, 15, 2)] })
  assert.deepEqual([one.split, one.attempts, all.attempts], [0.75, 1.75, 5.25])
  assert.deepEqual([one.p50, one.max, all.p50, all.max], [5, 8, 12, 15])
  assert.deepEqual([one.races, one.errors], [4, 0])
})

await test('who gave up is an error, and a race that somebody lost is over for nobody', () => {
  const { one, all } = metricsOf({
    races: [race(2, 9, 1), race(4, 5, 2, 1), race(undefined, undefined, undefined, 3)],
  })
  assert.deepEqual([one.errors, one.races, one.max, all.max], [4, 3, 4, 9])
})
