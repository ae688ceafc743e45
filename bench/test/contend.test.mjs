import assert from 'node:assert/strict'
import { test } from 'node:test'

import { fightMetrics } from '../lib/analyse.mjs'
import { contend } from '../lib/contend.mjs'
import { rawMemory } from '../contestants/raw-memory.mjs'

const FIGHT = { tasks: 8, ms: 50, work: 1, pick: 'any' }

await test('a lock that locks loses nothing', async () => {
  const session = await rawMemory[0].open()
  const metrics = fightMetrics([await contend(() => session.lock('name'), FIGHT)])
  assert.ok(metrics.sections > 0)
  assert.deepEqual([metrics.lost, metrics.overlaps, metrics.errors], [0, 0, 0])
})

await test('a lock that lets everybody in is caught twice', async () => {
  const open = { acquire: async () => {}, release: async () => {} }
  const metrics = fightMetrics([await contend(() => open, FIGHT)])
  assert.ok(metrics.lost > 0)
  assert.ok(metrics.overlaps > 0)
})

await test('with "other" no task has two sections in a row', async () => {
  const session = await rawMemory[0].open()
  const metrics = fightMetrics([
    await contend(() => session.lock('name'), { ...FIGHT, work: 0, pick: 'other' }),
  ])
  assert.equal(metrics.switchTask, 1)
})

await test('a library that gives up is counted and tried again', async () => {
  let calls = 0
  const moody = {
    async acquire() {
      if (calls++ % 2 === 0) throw new Error('busy')
    },
    async release() {},
  }
  const run = await contend(() => moody, { ...FIGHT, tasks: 1 })
  assert.ok(run.errors > 0)
  assert.deepEqual(Object.keys(run.failures), ['busy'])
  assert.ok(run.counts[0] > 0)
})
