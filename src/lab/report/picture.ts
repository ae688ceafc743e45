import type { At, FaultRecord, RunRecord } from '../record.ts'
import { counted, escape, milliseconds } from './escape.ts'
import type { Lane, Mark, Span } from './lanes.ts'
import { laneOf } from './lanes.ts'
import type { Window } from './window.ts'

const ROW = 40
const TOP = 34
const BAR = 16
const AXIS = 22

/**
 * A run as a picture: one row a client. Everything across is in per cent, so that the width alone zooms, and text
 * and lines keep their size.
 */
export function picture(run: RunRecord, window: Window): string {
  return new Picture(run, window).draw()
}

class Picture {
  private readonly run: RunRecord
  private readonly window: Window
  private readonly rank: ReadonlyMap<string, number>

  constructor(run: RunRecord, window: Window) {
    this.run = run
    this.window = window
    this.rank = ranks(run)
  }

  draw(): string {
    const { run, window } = this
    const height = TOP + run.clients.length * ROW + AXIS
    const events = run.timeline.filter(({ at }) => at >= window.from && at <= window.to)
    const lanes = run.clients.map((client) => laneOf(client, events, window.to))
    const shapes = [
      ...run.clients.map((client, row) => this.stripe(client, row)),
      ...run.faults.flatMap((fault) => this.fault(fault, height)),
      ...lanes.flatMap((lane, row) => this.lane(lane, row)),
      ...run.violations.flatMap((violation) => this.violation(violation, height)),
      ...this.axis(height),
    ]
    const label = `${run.title}. ${counted(run.clients.length, 'client')}, ${counted(run.faults.length, 'fault')}, ${counted(run.violations.length, 'violation')}.`
    return `<svg role="img" aria-label="${escape(label)}" height="${height}" width="100%">${shapes.join('')}</svg>`
  }

  private x(at: At): string {
    const { from, to } = this.window
    const part = ((at - from) / Math.max(1e-6, to - from)) * 100
    return `${Math.min(100, Math.max(0, part)).toFixed(3)}%`
  }

  private width(from: At, to: At): string {
    const span = this.window.to - this.window.from
    const [begin, end] = [Math.max(from, this.window.from), Math.min(to, this.window.to)]
    return `${(Math.max(0, end - begin) / Math.max(1e-6, span)) * 100}%`
  }

  private shows(from: At, to: At = from): boolean {
    return to >= this.window.from && from <= this.window.to
  }

  private stripe(client: string, row: number): string {
    const y = TOP + row * ROW
    const odd = row % 2 === 1 ? ' odd' : ''
    return `<rect class="row${odd}" x="0" y="${y}" width="100%" height="${ROW}"><title>${escape(client)}</title></rect>`
  }

  private fault({ at, until = at, kind, target, detail }: FaultRecord, height: number): string[] {
    if (!this.shows(at, until)) return []
    const row = this.run.clients.indexOf(target)
    // What is done to a server is done to all.
    const [y, tall] = row === -1 ? [0, height - AXIS] : [TOP + row * ROW, ROW]
    const words = `${kind}: ${target}${detail === undefined ? '' : `, ${detail}`}`
    const when = until === at ? milliseconds(at) : `${milliseconds(at)} to ${milliseconds(until)}`
    const title = `<title>${escape(`${words} (${when})`)}</title>`
    const band =
      until === at
        ? `<line class="fault" x1="${this.x(at)}" x2="${this.x(at)}" y1="${y}" y2="${y + tall}"/>`
        : `<rect class="fault" x="${this.x(at)}" y="${y}" width="${this.width(at, until)}" height="${tall}"/>`
    const flag = `<text class="fault" x="${this.x(at)}" y="12" dx="3">${escape(kind)}</text>`
    return [`<g>${title}${band}${flag}</g>`]
  }

  private lane({ spans, marks }: Lane, row: number): string[] {
    const middle = TOP + row * ROW + ROW / 2
    return [...spans.map((span) => this.span(span, middle)), ...marks.map((mark) => this.mark(mark, middle))]
  }

  private span({ kind, from, to, name, token, end, renewals }: Span, middle: number): string {
    const tall = kind === 'held' ? BAR : kind === 'waiting' ? 4 : 8
    const what =
      kind === 'held'
        ? `holds ${name}, token ${token}`
        : kind === 'waiting'
          ? `waits for ${name}`
          : 'gives it back'
    const text = `${what}: ${milliseconds(from)} to ${milliseconds(to)}, ${end}`
    const box = `<rect class="${kind} end-${end}" x="${this.x(from)}" y="${middle - tall / 2}" width="${this.width(from, to)}" height="${tall}" rx="2"/>`
    const ticks = renewals.map(
      (at) =>
        `<line class="renewal" x1="${this.x(at)}" x2="${this.x(at)}" y1="${middle - BAR / 2}" y2="${middle + BAR / 2}"/>`,
    )
    return `<g>${title(text)}${box}${ticks.join('')}${this.number(kind === 'held' ? token : undefined, from, middle)}</g>`
  }

  /** Which token it is, counted from the smallest: the numbers themselves are too long to be compared by eye. */
  private number(token: string | undefined, from: At, middle: number): string {
    const rank = token === undefined ? undefined : this.rank.get(token)
    if (rank === undefined) return ''
    return `<text class="token" x="${this.x(from)}" y="${middle - BAR / 2 - 2}">${rank}</text>`
  }

  private mark({ kind, at, token, detail }: Mark, middle: number): string {
    const words = {
      lost: 'lost',
      'at-risk': 'a renewal failed',
      write: 'wrote',
      'write-refused': 'write refused',
    }[kind]
    const more = [token === undefined ? '' : `token ${token}`, detail ?? ''].filter((part) => part !== '')
    const text = `${[words, ...more].join(', ')} at ${milliseconds(at)}`
    const y = middle + BAR / 2 + 4
    const shape =
      kind === 'write'
        ? `<circle class="write" cx="${this.x(at)}" cy="${y}" r="2"/>`
        : `<text class="mark ${kind}" x="${this.x(at)}" y="${y + 4}">${SIGNS[kind]}</text>`
    return `<g>${title(text)}${shape}</g>`
  }

  private violation(
    { check, message, at, clients = [] }: RunRecord['violations'][number],
    height: number,
  ): string[] {
    if (at === undefined || !this.shows(at)) return []
    const rows = clients.map((client) => this.run.clients.indexOf(client)).filter((row) => row >= 0)
    const boxes = rows.map(
      (row) => `<circle class="violation" cx="${this.x(at)}" cy="${TOP + row * ROW + ROW / 2}" r="7"/>`,
    )
    const line = `<line class="violation" x1="${this.x(at)}" x2="${this.x(at)}" y1="14" y2="${height - AXIS}"/>`
    const flag = `<text class="violation" x="${this.x(at)}" y="26" dx="3">${escape(check)}</text>`
    return [`<g>${title(`${check}: ${message}`)}${line}${boxes.join('')}${flag}</g>`]
  }

  private axis(height: number): string[] {
    const { from, to } = this.window
    const step = niceStep((to - from) / 8)
    const first = Math.ceil(from / step) * step
    const count = Math.max(0, Math.floor((to - first) / step)) + 1
    return Array.from({ length: count }, (_, index) => first + index * step).map((at) => {
      const x = this.x(at)
      const line = `<line class="axis" x1="${x}" x2="${x}" y1="${TOP}" y2="${height - AXIS + 4}"/>`
      return `${line}<text class="axis" x="${x}" y="${height - 5}">${at >= 1000 ? `${at / 1000} s` : `${at} ms`}</text>`
    })
  }
}

const SIGNS = { lost: '✗', 'at-risk': '!', 'write-refused': '⊘' } as const

const title = (text: string): string => `<title>${escape(text)}</title>`

function ranks({ timeline }: RunRecord): Map<string, number> {
  const tokens = [...new Set(timeline.flatMap(({ token }) => token ?? []))].filter((token) =>
    /^\d+$/.test(token),
  )
  const sorted = tokens.sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))
  return new Map(sorted.map((token, index) => [token, index + 1]))
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)))
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
}
