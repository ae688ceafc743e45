import { METRICS } from './metrics.mjs'
import { bar, rule, svg, text } from './svg.mjs'

const WIDTH = 760
const NAMES = 255
const VALUES = 90
const ROW = 22
const HEAD = 50
const FOOT = 12

/**
 * One panel of bars from zero, so that a length is a number: where a peer's bar cannot be seen, that is the news.
 * @typedef {{ title: string, note: string, metric: string, bars: { label: string, value: number, kind: string }[] }} Panel
 */

/** @returns {Panel | undefined} nothing when nobody has the number */
export function panelOf(result, { metric = result.headline, title, note, without, oneEach = false }) {
  const order = { limit: 0, ours: 1, peer: 2 }
  const sign = METRICS[metric].better === 'more' ? -1 : 1
  const bars = result.rows
    .filter(
      ({ summary, secondary, role }) =>
        Number.isFinite(summary[metric]?.median) && !secondary && role !== without,
    )
    .map(({ label, role, family, summary, ownStore }) => ({
      family,
      label: ownStore ? `${label} (no Redis)` : label,
      value: summary[metric].median,
      kind: kindOf(role, summary),
      role,
    }))
    .sort((a, b) => order[a.role] - order[b.role] || (a.role === 'peer' ? sign * (a.value - b.value) : 0))
  const shown = oneEach ? bars.filter((one) => isBest(one, bars)) : bars
  return shown.length === 0 ? undefined : { title, note, metric, bars: shown }
}

/** Of a peer's configurations the first, for they are sorted; of ours and of the limit all. */
const isBest = (one, bars) =>
  one.role !== 'peer' || bars.find(({ role, family }) => role === 'peer' && family === one.family) === one

const kindOf = (role, summary) =>
  (summary.lost?.median ?? 0) + (summary.overlaps?.median ?? 0) > 0 ? 'wrong' : role

const heightOf = ({ bars }) => HEAD + bars.length * ROW + FOOT

/** One picture of one or more panels, one below the other. */
export function barPlot(panels, label) {
  const height = panels.reduce((sum, panel) => sum + heightOf(panel), 8)
  let top = 4
  const parts = panels.map((panel) => {
    const drawn = draw(panel, top)
    top += heightOf(panel)
    return drawn
  })
  return svg({ width: WIDTH, height, label, body: parts.join('\n') })
}

function draw({ title, note, metric, bars }, top) {
  const room = WIDTH - NAMES - VALUES
  const most = Math.max(...bars.map(({ value }) => value)) || 1
  const rows = bars.flatMap(({ label, value, kind }, number) => {
    const y = top + HEAD + number * ROW
    const length = (value / most) * room
    return [
      text(NAMES - 10, y + 13, label, { kind: kind === 'wrong' ? 'peer' : kind, anchor: 'end' }),
      bar(NAMES, y + 3, length, ROW - 8, kind),
      text(NAMES + length + 6, y + 13, METRICS[metric].write(value), {
        kind: kind === 'ours' ? 'ours' : 'tick',
      }),
    ]
  })
  return [
    text(16, top + 20, title, { kind: 'title' }),
    text(16, top + 37, note, { kind: 'note' }),
    rule(NAMES, top + HEAD, NAMES, top + HEAD + bars.length * ROW),
    ...rows,
  ].join('\n')
}
