import assert from 'node:assert/strict'
import { test } from 'node:test'

import { fightMetrics, merged, overlaps, switches } from '../lib/analyse.mjs'

const log = (...sections) => ({
  asked: sections.map(([entered]) => entered - 1),
  entered: sections.map(([entered]) => entered),
  left: sections.map(([, left]) => left),
  task: sections.map(([, , task = 0]) => task),
})

const run = (sections, more = {}) => ({
  start: 0,
  end: 1000,
  ms: 1000,
  counts: Uint32Array.from(
    { length: 2 },
    (_, task) => sections.filter(([, , who = 0]) => who === task).length,
  ),
  log: log(...sections),
  waitingSince: new Float64Array(2),
  lost: 0,
  updates: sections.length,
  errors: 0,
  requests: 0,
  cpu: 0,
  ...more,
})

await test('the logs of several processes become one in the order of their beginning', () => {
  const order = merged([log([10, 11], [30, 31]), log([20, 21])])
  assert.deepEqual(
    order.map(({ process, entered }) => [process, entered]),
    [
      [0, 10],
      [1, 20],
      [0, 30],
    ],
  )
})

await test('two sections at once are found, one after the other are not', () => {
  assert.equal(overlaps(merged([log([0, 10]), log([10, 20])])), 0)
  assert.equal(overlaps(merged([log([0, 10]), log([5, 8])])), 1)
})

await test('a long section hides no overlap behind a short one', () => {
  assert.equal(overlaps(merged([log([0, 100]), log([10, 20], [50, 60])])), 2)
})

await test('readers may share, a writer among them may not', () => {
  const section = (entered, left, write) => ({ entered, left, write })
  assert.equal(overlaps([section(0, 10, false), section(5, 15, false)]), 0)
  assert.equal(overlaps([section(0, 10, false), section(5, 15, true)]), 1)
  assert.equal(overlaps([section(0, 10, true), section(5, 15, false)]), 1)
})

await test('switches count how often the next one is somebody else', () => {
  const who = (name) => name
  assert.equal(switches(['a', 'a', 'b', 'b', 'a'], who), 0.5)
})

await test('a task that is never served counts as starved and as the longest wait', () => {
  const waitingSince = Float64Array.from([0, 100])
  const metrics = fightMetrics([
    run(
      [
        [10, 11],
        [20, 21],
      ],
      { waitingSince },
    ),
  ])
  assert.equal(metrics.starved, 1)
  assert.equal(metrics.max, 900)
  assert.equal(metrics.fairTask, Infinity)
})

await test('a witness that is short tells lost updates', () => {
  const metrics = fightMetrics(
    [
      run([
        [10, 11],
        [20, 21, 1],
      ]),
      run([
        [30, 31],
        [40, 41, 1],
      ]),
    ],
    { witnessed: 3 },
  )
  assert.equal(metrics.lost, 1)
  assert.equal(metrics.rate, 4)
})
