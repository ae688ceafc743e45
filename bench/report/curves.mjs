import { dot, polyline, rule, svg, text } from './svg.mjs'

const WIDTH = 760
const HEIGHT = 330
const LEFT = 76
const RIGHT = 200
const TOP = 62
const BOTTOM = 44
const LABEL_GAP = 15

const log = Math.log10

/** The powers of ten around some values, at least one decade. */
export function decades(values) {
  const low = Math.floor(log(Math.min(...values)) + 1e-9)
  const high = Math.max(low + 1, Math.ceil(log(Math.max(...values)) - 1e-9))
  return Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step))
}

/** Labels at the ends of lines, moved apart where they would cover each other, in the order of the lines. */
export function spreadOut(places, gap) {
  const order = places.map((place, number) => ({ place, number })).sort((a, b) => a.place - b.place)
  const moved = []
  let free = -Infinity
  for (const { place, number } of order) {
    moved[number] = Math.max(place, free)
    free = moved[number] + gap
  }
  return moved
}

/**
 * Both axes count in powers of ten: a line that lies flat costs the same whatever there is of it.
 * @param {{ title: string, note: string, xLabel: string, write: (value: number) => string,
 *   lines: { label: string, kind: string, points: [number, number][] }[] }} plot
 */
export function curvePlot({ title, note, xLabel, write, lines }) {
  const points = lines.flatMap((line) => line.points)
  const across = decades(points.map(([x]) => x))
  const up = decades(points.map(([, y]) => y))
  const scale = (ticks, from, to) => (value) =>
    from + ((log(value) - log(ticks[0])) / (log(ticks.at(-1)) - log(ticks[0]))) * (to - from)
  const x = scale(across, LEFT, WIDTH - RIGHT)
  const y = scale(up, HEIGHT - BOTTOM, TOP)
  const ends = spreadOut(
    lines.map((line) => y(line.points.at(-1)[1])),
    LABEL_GAP,
  )
  const body = [
    text(16, 24, title, { kind: 'title' }),
    text(16, 41, note, { kind: 'note' }),
    ...up.flatMap((tick) => [
      rule(LEFT, y(tick), WIDTH - RIGHT, y(tick)),
      text(LEFT - 8, y(tick) + 4, write(tick), { kind: 'tick', anchor: 'end' }),
    ]),
    ...across.map((tick) =>
      text(x(tick), HEIGHT - BOTTOM + 18, tick.toLocaleString('en'), { kind: 'tick', anchor: 'middle' }),
    ),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, xLabel, { kind: 'note', anchor: 'middle' }),
    // Ours last, so that nothing is drawn over it.
    ...[...lines.entries()]
      .sort(([, a], [, b]) => Number(a.kind.startsWith('ours')) - Number(b.kind.startsWith('ours')))
      .map(([number, line]) => drawLine(line, x, y, ends[number])),
  ]
  return svg({ width: WIDTH, height: HEIGHT, label: `${title}. ${note}`, body: body.join('\n') })
}

function drawLine({ label, kind, points }, x, y, labelAt) {
  const placed = points.map(([across, up]) => [x(across), y(up)])
  const [role] = kind.split(' ')
  return [
    polyline(placed, kind),
    ...placed.map(([across, up]) => dot(across, up, role)),
    text(placed.at(-1)[0] + 10, labelAt + 4, label, { kind: `end ${role}` }),
  ].join('\n')
}
