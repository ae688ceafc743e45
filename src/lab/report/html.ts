import type { RunRecord } from '../record.ts'
import { anchor, counted, escape, milliseconds } from './escape.ts'
import { allEvents, MOST_ROWS, violationSections } from './events.ts'
import { picture } from './picture.ts'
import { STYLE } from './style.ts'
import type { Pile, Tally } from './tally.ts'
import { tally } from './tally.ts'
import { verdictList, verdictTables } from './verdicts.ts'
import { MOST_EVENTS, windowOf } from './window.ts'

export interface ReportOptions {
  readonly title?: string
  /** What was run, in words: a store's address without its password, a seed. */
  readonly about?: string
  readonly date?: Date
}

const COUNTS: readonly (readonly [Pile, string])[] = [
  ['held', 'verdicts: held'],
  ['broke', 'broke, as expected'],
  ['lucky', 'held, though not promised'],
  ['unexpected', 'not as the table says'],
  ['unknown', 'undecided'],
  ['notRun', 'not run'],
]

const LEGEND = [
  ['--wait', 'waiting'],
  ['--held', 'held; the number counts the tokens, the white lines are renewals'],
  ['--warn', 'lost, or gave up waiting'],
  ['--faultbg', 'fault'],
  ['--bad', 'violation; ⊘ a write that the fenced resource refused'],
  ['--good', 'write'],
]

/** How much of a run is drawn, and told in words. */
interface Detail {
  readonly events: number
  readonly rows: number
}

const FULL: Detail = { events: MOST_EVENTS, rows: MOST_ROWS }
const LESS: Detail = { events: 300, rows: 40 }
const MANY_RUNS = 40

/** Everything in one file: it opens without a network, and has no script that could be blocked. */
export function report(records: readonly RunRecord[], options: ReportOptions = {}): string {
  const { title = 'holdfast lab', about = '', date = new Date() } = options
  const piles = tally(records)
  const counts = COUNTS.filter(([pile]) => piles[pile].length > 0).map(
    ([pile, words]) => `<li class="${pile}"><b>${piles[pile].length}</b>${words}</li>`,
  )
  // A hundred runs in full are too much for a phone; what went wrong is always shown in full.
  const most = records.length > MANY_RUNS ? LESS : FULL
  const bad = new Set([...piles.unexpected, ...piles.unknown].map(({ run }) => run))
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escape(title)}</title><style>${STYLE}</style></head>
<body><header><h1>${escape(title)}</h1><p class="dim">${escape(about)} ${date.toISOString().slice(0, 16).replace('T', ' ')} UTC, ${counted(records.length, 'run')}</p></header>
<main><p class="outcome">${outcome(piles)}</p><ul class="counts">${counts.join('')}</ul>
<p class="dim">One verdict is one check in one run. What broke as expected is what the table of guarantees says cannot hold there: it has to be seen to break, or the lab would prove nothing.</p>
<h2>Verdicts</h2>${verdictTables(records)}
<h2>Runs</h2><ul class="legend">${LEGEND.map(([colour, words]) => `<li><i style="background:var(${colour})"></i>${words}</li>`).join('')}</ul>
${records.map((run) => section(run, bad.has(run), most)).join('\n')}
</main></body></html>
`
}

/** The whole in a sentence. */
function outcome({ held, broke, lucky, unexpected, unknown, notRun }: Tally): string {
  if (unexpected.length + unknown.length > 0)
    return `<b class="bad">${unexpected.length} not as promised, ${unknown.length} undecided.</b>`
  const seen = [...held, ...broke, ...lucky]
  if (seen.every(({ verdict }) => verdict.expected === 'not asked') && seen.length > 0)
    return '<b>What was seen of other libraries. Nothing is judged.</b>'
  if (seen.length === 0) return '<b class="bad">Nothing was run.</b>'
  const rest = notRun.length === 0 ? '' : ` ${notRun.length} not run, and not counted as held.`
  return `<b class="good">Everything that was run is as promised.</b>${rest}`
}

function section(run: RunRecord, open: boolean, usual: Detail): string {
  const most = open ? FULL : usual
  const seed = run.seed === undefined ? '' : `, seed ${run.seed}`
  const facts = `${run.store}, ${run.fault}: ${milliseconds(run.durationMs)}, ${counted(run.clients.length, 'client')}, ${counted(run.violations.length, 'violation')}${seed}`
  return `<details class="run"${open ? ' open' : ''}><summary><strong>${escape(run.title)}</strong><span class="dim">${escape(facts)}</span></summary>
<div class="inside" id="${anchor(run.id)}">${run.about === undefined ? '' : `<p class="dim">${escape(run.about)}</p>`}${verdictList(run)}${countsList(run)}${timeline(run, most)}${violationSections(run)}${allEvents(run, most.rows)}</div></details>`
}

/** How much there was to look at, and how long the faults really were. */
function countsList({ clients, faults, counts }: RunRecord): string {
  if (counts === undefined) return ''
  const { grants, respawns, ttl, command } = counts
  const kinds = [...new Set(faults.map(({ kind }) => kind))].map((kind) => {
    const own = faults.filter((fault) => fault.kind === kind)
    const lengths = own.flatMap(({ at, until }) => (until === undefined ? [] : [until - at]))
    const bounds = [Math.min(...lengths), Math.max(...lengths)].map(milliseconds)
    const long = lengths.length === 0 ? '' : `, ${[...new Set(bounds)].join(' to ')}`
    return `${own.length} × ${kind}${long}`
  })
  const facts = [
    ['grants', String(grants)],
    ['clients', `${clients.length}, ${respawns} of them in the place of one that was killed`],
    ['ttl', milliseconds(ttl)],
    ['faults', kinds.length === 0 ? 'none' : kinds.join('; ')],
    ...(command === undefined ? [] : [['command', command]]),
  ]
  return `<dl class="facts">${facts.map(([what = '', text = '']) => `<dt>${what}</dt><dd>${escape(text)}</dd>`).join('')}</dl>`
}

function timeline(run: RunRecord, { events }: Detail): string {
  if (run.clients.length === 0 || run.timeline.length === 0) return ''
  const window = windowOf(run, events)
  const id = anchor(run.id)
  const zoom = [1, 4, 16].map(
    (factor) =>
      `<label><input type="radio" class="z${factor}" name="zoom-${id}"${factor === 1 ? ' checked' : ''}> ${factor}×</label>`,
  )
  const part =
    window.shown === window.all
      ? ''
      : `<p class="dim">Drawn: ${window.shown} of ${window.all} events, from ${milliseconds(window.from)} to ${milliseconds(window.to)}.</p>`
  const labels = run.clients.map((client) => `<div title="${escape(client)}">${escape(client)}</div>`)
  return `${part}<fieldset class="zoom"><legend>Zoom</legend>${zoom.join('')}</fieldset>
<div class="timeline"><div class="labels" aria-hidden="true">${labels.join('')}</div>
<div class="view" tabindex="0" role="region" aria-label="${escape(`Timeline of ${run.title}`)}">${picture(run, window)}</div></div>`
}
