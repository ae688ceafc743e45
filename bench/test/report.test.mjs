import assert from 'node:assert/strict'
import { test } from 'node:test'

import { barPlot, panelOf } from '../report/bars.mjs'
import { curvePlot, decades, spreadOut } from '../report/curves.mjs'
import { filled } from '../report/fill.mjs'
import { METRICS } from '../report/metrics.mjs'
import { stripesTable } from '../report/stripes.mjs'
import { tableOf } from '../report/table.mjs'
import { markdownTable, textTable } from '../report/text.mjs'
import { WORKLOADS } from '../workloads/index.mjs'
import { resultWith } from './result.mjs'

const result = resultWith({
  slow: { role: 'peer', rates: [10, 10] },
  cheat: { role: 'peer', rates: [50, 50], lost: 1 },
  ours: { role: 'ours', rates: [80, 120] },
  limit: { role: 'limit', rates: [100, 100] },
})

const run = {
  environment: {
    date: '2030-01-02T03:04:05Z',
    cpu: 'a CPU',
    cores: 2,
    node: 'v20.0.0',
    servers: { redis: '7' },
    loadBefore: [0.1],
    loadAfter: 1,
  },
  versions: { ioredis: '5', redis: '5' },
  options: { seed: 1, quick: false },
  leftOut: [],
  results: [result],
}

await test('every column of every workload is a known metric', () => {
  for (const { columns, headline } of WORKLOADS) {
    for (const key of [...columns, headline]) assert.ok(METRICS[key] !== undefined, key)
  }
})

await test('the limit comes first, then we, then the peers from the best down', () => {
  assert.deepEqual(
    tableOf(result).rows.map(({ cells }) => cells[0].split(' ')[0]),
    ['limit', 'ours', 'cheat', 'slow'],
  )
})

await test('a library that lost updates is marked by its name', () => {
  assert.match(tableOf(result).rows[2].cells[0], /let two in at once/)
})

await test('rounds that disagree are shown with their spread', () => {
  assert.equal(tableOf(result).rows[1].cells[1], '100 (80.0 … 120)')
})

await test('the terminal table is aligned and the markdown one escapes its own signs', () => {
  const lines = textTable(tableOf(result)).split('\n')
  assert.equal(new Set(lines.slice(0, 2).map((line) => line.length)).size, 1)
  assert.match(markdownTable({ head: ['a'], rows: [{ kind: 'ours', cells: ['x|y'] }] }), /\*\*x\\\|y\*\*/)
})

await test('a bar is as long as its number, and numbers stand beside it', () => {
  const plot = barPlot([panelOf(result, { title: 'T <1>', note: 'n' })], 'T')
  const widths = [...plot.matchAll(/class="(limit|ours|peer|wrong)" x="[\d.]+" y="[\d.]+" width="([\d.]+)"/g)]
  const width = Object.fromEntries(widths.map(([, kind, value]) => [kind, Number(value)]))
  assert.equal(width.ours, width.limit)
  assert.ok(Math.abs(width.wrong / width.limit - 0.5) < 0.01)
  assert.match(plot, /T &lt;1&gt;/)
  assert.match(plot, /prefers-color-scheme: dark/)
})

await test('axes end at powers of ten around the numbers', () => {
  assert.deepEqual(decades([3, 150]), [1, 10, 100, 1000])
  assert.deepEqual(decades([10, 10]), [10, 100])
})

await test('labels that would cover each other move apart and keep their order', () => {
  assert.deepEqual(spreadOut([50, 10, 12], 15), [50, 10, 25])
})

await test('a curve goes through all its points', () => {
  const points = [
    [1, 1],
    [10, 1],
    [100, 5],
  ]
  const plot = curvePlot({
    title: 't',
    note: 'n',
    xLabel: 'x',
    write: String,
    lines: [{ label: 'ours', kind: 'ours', points }],
  })
  assert.equal(plot.match(/<circle/g).length, 3)
})

await test('places in a page are filled and can be filled again', () => {
  const page = 'before\n<!-- bench:begin table w1 redis alone -->\nold\n<!-- bench:end -->\nafter'
  const once = filled(page, run, 'img')
  assert.match(once, /\| \*\*ours\*\* \|/)
  assert.doesNotMatch(once, /old/)
  assert.match(once, /^before\n[\s\S]*\nafter$/)
  assert.equal(filled(once, run, 'img'), once)
})

await test('a place that nothing can fill is an error, not an old number', () => {
  const page = '<!-- bench:begin table w99 redis alone -->\n<!-- bench:end -->'
  assert.throws(() => filled(page, run, 'img'), /w99/)
})

await test('a table of a store that could not be measured says so instead of keeping old numbers', () => {
  const page = '<!-- bench:begin table w1 sqlite alone -->\nold\n<!-- bench:end -->'
  const without = { ...run, leftOut: [{ name: 'holdfast on sqlite', reason: 'no such driver' }] }
  assert.match(filled(page, without, 'img'), /Not measured in this run: no such driver/)
  assert.doesNotMatch(filled(page, without, 'img'), /old/)
})

await test('a stock is one table, a row for each number of segments', () => {
  const variants = [1, 2].map((segments) => ({
    workload: 'w14',
    store: 'memory',
    variantLabel: `${segments} segments`,
    columns: ['rate'],
    rows: [{ summary: { rate: { median: segments * 100 } } }],
  }))
  const { rows } = stripesTable({ results: variants }, 'memory')
  assert.deepEqual(
    rows.map(({ cells }) => cells),
    [
      ['1 segments', '100'],
      ['2 segments', '200'],
    ],
  )
})
