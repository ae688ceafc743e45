import assert from 'node:assert/strict'
import { test } from 'node:test'

import { withNewerNodes } from '../lib/newer-node.mjs'

const raw = { id: 'raw', label: 'raw limit', store: 'memory' }
const old = { id: 'ours', label: 'holdfast', store: 'sqlite', node: '22' }
const planOf = (...contestants) => ({
  contestants,
  leftOut: [],
  bouts: contestants.map((one) => ({ workload: one.store, contestants: [one] })),
})
const quietly = { say: () => {} }

await test('whoever needs a newer Node gets one, the same wherever he is named', () => {
  const fetched = []
  const fetch = (major) => (fetched.push(major), `/node-${major}`)
  const { contestants, bouts, leftOut } = withNewerNodes(planOf(raw, old), { ...quietly, fetch })
  assert.deepEqual(
    contestants.map(({ execPath }) => execPath),
    [undefined, '/node-22'],
  )
  assert.equal(bouts[1].contestants[0], contestants[1])
  assert.deepEqual(fetched, ['22'])
  assert.deepEqual(leftOut, [])
})

await test('nothing is fetched for somebody who has nothing to do', () => {
  const plan = { ...planOf(raw, old), bouts: planOf(raw).bouts }
  const fetch = () => assert.fail('fetched')
  assert.equal(withNewerNodes(plan, { ...quietly, fetch }), plan)
})

await test('where none can be had the others run, and the reason is told', () => {
  const fetch = () => {
    throw new Error('no network\nand more')
  }
  const { contestants, bouts, leftOut } = withNewerNodes(planOf(raw, old), { ...quietly, fetch })
  assert.deepEqual(contestants, [raw])
  assert.deepEqual(
    bouts.map(({ workload }) => workload),
    ['memory'],
  )
  assert.deepEqual(leftOut, [
    { name: 'holdfast on sqlite', reason: 'Node 22 could not be fetched: no network' },
  ])
})
