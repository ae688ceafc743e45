import assert from 'node:assert/strict'
import { test } from 'node:test'

import { fairness, median, quantile, spread, tail } from '../lib/stats.mjs'

await test('a quantile lies between its neighbours in proportion', () => {
  assert.equal(quantile([1, 2, 3, 4], 0.5), 2.5)
  assert.equal(quantile([10], 0.99), 10)
  assert.ok(Number.isNaN(quantile([], 0.5)))
})

await test('one slow round does not move the median', () => {
  assert.equal(median([100, 101, 3]), 100)
})

await test('the tail is found in any order of times', () => {
  const times = Array.from({ length: 101 }, (_, number) => 100 - number)
  assert.deepEqual(tail(times), { p50: 50, p99: 99, max: 100 })
})

await test('the spread leaves out rounds without the number and keeps infinity', () => {
  assert.deepEqual(spread([3, NaN, 1, undefined, 2]), { median: 2, min: 1, max: 3, rounds: 3 })
  assert.equal(spread([Infinity, Infinity, 1]).median, Infinity)
  assert.equal(spread([NaN]), undefined)
})

await test('somebody who got nothing makes fairness infinite', () => {
  assert.equal(fairness([10, 5]), 2)
  assert.equal(fairness([10, 0]), Infinity)
})
