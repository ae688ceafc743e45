import type { RunRecord, Verdict } from '../record.ts'
import { anchor, escape } from './escape.ts'
import type { Pile } from './tally.ts'
import { pileOf } from './tally.ts'

const WORDS: Readonly<Record<Pile, readonly [sign: string, word: string]>> = {
  held: ['✓', 'held'],
  broke: ['⚡', 'broke, as expected'],
  lucky: ['✓', 'held, though not promised'],
  unexpected: ['✗', 'BROKE'],
  unknown: ['?', 'undecided'],
  notRun: ['–', 'not run'],
}

const PARTS: readonly (readonly [title: string, prefix: string])[] = [
  ['Faults on real servers', 'live/'],
  ['Specimens, and holdfast in the same scenario', 'specimen/'],
  ['Specification', 'spec/'],
  ['Other libraries', 'others/'],
]

/** The parts of the lab have different checks: a table of its own for each is narrower, and says more. */
export function verdictTables(records: readonly RunRecord[]): string {
  const parts = PARTS.map(
    ([title, prefix]) => [title, records.filter(({ id }) => id.startsWith(prefix))] as const,
  )
  const others = records.filter(({ id }) => !PARTS.some(([, prefix]) => id.startsWith(prefix)))
  return [...parts, ['Simulation', others] as const]
    .filter(([, runs]) => runs.length > 0)
    .map(([title, runs]) => `<h3>${title}</h3>${verdictTable(runs, title)}`)
    .join('\n')
}

/** Store × fault × check, what is expected and what was seen. */
function verdictTable(records: readonly RunRecord[], title: string): string {
  const checks = [...new Set(records.flatMap(({ verdicts }) => verdicts.map(({ check }) => check)))]
  const head = ['store', 'fault', ...checks].map((name) => `<th scope="col">${escape(name)}</th>`)
  const rows = records.map((run) => {
    const cells = checks.map((check) =>
      cellOf(
        check,
        run.verdicts.find((verdict) => verdict.check === check),
      ),
    )
    const link = `<a href="#${anchor(run.id)}">${escape(run.fault)}</a>`
    return `<tr><th scope="row">${escape(run.store)}</th><td class="fault-name">${link}</td>${cells.join('')}</tr>`
  })
  return `<div class="scroll" tabindex="0" role="region" aria-label="${escape(title)}"><table class="verdicts">
<thead><tr>${head.join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>`
}

function cellOf(check: string, verdict: Verdict | undefined): string {
  if (verdict === undefined) return '<td class="none"></td>'
  return `<td class="${pileOf(verdict)}" data-check="${escape(check)}">${seen(verdict)}</td>`
}

function seen(verdict: Verdict): string {
  const [sign, usual] = WORDS[pileOf(verdict)]
  // What had to be seen to break and was not: a flaw that nobody caught, or a fault that did not hurt.
  const { expected, why } = verdict
  const missed = expected === 'breaks' && verdict.seen === 'held'
  const word = missed ? 'NOT CAUGHT' : expected === 'not asked' ? verdict.seen : usual
  const hint = [`expected: ${expected}`, `seen: ${verdict.seen}`, why ?? '']
    .filter((part) => part !== '')
    .join('. ')
  const promise = promiseOf(verdict)
  const small = promise === '' ? '' : `<small> ${promise}</small>`
  return `<span title="${escape(hint)}"><b aria-hidden="true">${sign}</b> ${word}${small}</span>`
}

/** What was promised, where that is not what one takes for granted. */
function promiseOf({ expected, seen }: Verdict): string {
  if (seen === 'not run' || expected === 'not asked') return ''
  if (expected === 'holds') return seen === 'held' ? '' : 'promised to hold'
  return expected === 'breaks' ? 'known to break here' : 'not promised here'
}

/** The verdicts of one run, in full. */
export function verdictList({ verdicts }: RunRecord): string {
  const items = verdicts.map(
    (verdict) =>
      `<li class="${pileOf(verdict)}"><strong>${escape(verdict.check)}</strong> ${seen(verdict)}${verdict.why === undefined ? '' : `<br>${escape(verdict.why)}`}</li>`,
  )
  return `<ul class="verdict-list">${items.join('')}</ul>`
}
