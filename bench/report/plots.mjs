// Which pictures there are. Names are file names in docs/img.
import { barPlot, panelOf } from './bars.mjs'
import { curvePlot } from './curves.mjs'

const find = (results, workload, store, variant) =>
  results.find((one) => one.workload === workload && one.store === store && one.variant === variant)

/** Several panels of one picture: workload, store, variant, and what to say. */
const BARS = {
  overview: [
    [
      'w1',
      'redis',
      'alone',
      { title: 'Alone: one client, one name', note: 'sections a second, more is better' },
    ],
    [
      'w3',
      'redis',
      'other',
      {
        title: 'One process, 100 tasks, one name, another task each time',
        note: 'sections a second, more is better',
      },
    ],
    [
      'w4',
      'redis',
      'work0',
      { title: 'Four processes with eight tasks each, one name', note: 'sections a second, more is better' },
    ],
  ],
  sequential: [
    ['w1', 'redis', 'alone', { title: 'One client, one name, on Redis', note: 'sections a second' }],
  ],
  'many-names': [
    ['w2', 'redis', '64', { title: '64 names at once, on Redis', note: 'sections a second' }],
    ['w2', 'redis', '1024', { title: '1,024 names at once, on Redis', note: 'sections a second' }],
  ],
  'one-process': [
    ['w3', 'redis', 'any', { title: '100 tasks, any may win again', note: 'sections a second' }],
    ['w3', 'redis', 'other', { title: '100 tasks, another one each time', note: 'sections a second' }],
  ],
  'several-processes': [
    ['w4', 'redis', 'work0', { title: '4 processes × 8 tasks, ~0 work', note: 'sections a second' }],
    [
      'w4',
      'redis',
      'work2',
      {
        metric: 'max',
        title: '4 processes × 8 tasks, 2 ms of work',
        note: 'longest wait of any task, less is better',
      },
    ],
  ],
  'idle-waiters': [
    [
      'w5',
      'redis',
      'idle',
      { title: '1,000 tasks wait for a held lock', note: 'Redis requests a second, less is better' },
    ],
  ],
  'held-leases': [
    [
      'w6',
      'redis',
      'held',
      { title: '10,000 leases held, ttl 3 s', note: 'Redis requests a second, less is better' },
    ],
  ],
  'hand-over': [
    [
      'w8',
      'redis',
      'pair',
      { title: 'Hand-over between two processes', note: 'middle of all hand-overs, less is better' },
    ],
  ],
  readers: [
    ['w10', 'redis', 'mixed', { title: 'Read-mostly, 64 tasks in 4 processes', note: 'sections a second' }],
  ],
  memory: [
    [
      'w1',
      'memory',
      'alone',
      { title: 'In memory: one name, alone', note: 'sections a second', without: 'limit' },
    ],
    [
      'w3',
      'memory',
      'any',
      { title: 'In memory: 100 tasks, one name', note: 'sections a second', without: 'limit' },
    ],
  ],
}

const GROWTH_TITLES = {
  waiters: 'More waiters of one process',
  strangers: 'More waiters, each with its own session',
  leases: 'More leases held beside it',
  processes: 'More processes with eight tasks each',
}

/** @returns {Map<string, string>} SVG by file name, those that the results have numbers for */
export function plotsOf({ results }) {
  const plots = new Map()
  for (const [name, wishes] of Object.entries(BARS)) {
    // The picture for people in a hurry shows every library once, at its best.
    const oneEach = name === 'overview'
    const panels = wishes.map(([workload, store, variant, wish]) => {
      const result = find(results, workload, store, variant)
      return result === undefined ? undefined : panelOf(result, { ...wish, oneEach })
    })
    const there = panels.filter((panel) => panel !== undefined)
    if (there.length > 0) plots.set(`${name}.svg`, barPlot(there, there.map(({ title }) => title).join('; ')))
  }
  for (const store of ['redis', 'memory']) {
    for (const series of Object.keys(GROWTH_TITLES)) {
      const plot = growthPlot(results, store, series)
      if (plot !== undefined) plots.set(`growth-${series}-${store}.svg`, plot)
    }
  }
  return plots
}

function growthPlot(results, store, series) {
  const steps = results.filter((one) => one.workload === 'w9' && one.store === store && one.series === series)
  const lines = linesOf(steps)
  if (lines.every(({ points }) => points.length < 2)) return undefined
  return curvePlot({
    title: `${GROWTH_TITLES[series]}, on ${store === 'redis' ? 'Redis' : 'memory'}`,
    note: 'microseconds a section, ~0 work; flat is good',
    xLabel: steps[0].seriesLabel,
    write: (value) => (value >= 1 ? value.toLocaleString('en') : String(value)),
    lines: lines.filter(({ points }) => points.length > 1),
  })
}

function linesOf(steps) {
  const lines = new Map()
  for (const { x, rows } of steps) {
    for (const { id, label, role, summary } of rows) {
      const cost = summary.cost?.median
      if (!Number.isFinite(cost)) continue
      const kind = role === 'ours' && id.endsWith('strict') ? 'ours strict' : role
      if (!lines.has(id)) lines.set(id, { label, kind, points: [] })
      lines.get(id).points.push([x, cost])
    }
  }
  return [...lines.values()]
}
