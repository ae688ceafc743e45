// What broke where, as a table for people.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { OTHERS } from './index.mjs'

const DOC = fileURLToPath(new URL('../../docs/lab-others.md', import.meta.url))
const MARKS = ['<!-- what broke where -->', '<!-- end of what broke where -->']

/** Libraries across, faults down. */
export function othersTable(records, seed) {
  const played = OTHERS.filter(({ id }) => records.some((record) => record.id.startsWith(`others/${id}/`)))
  const faults = [...new Set(records.map(({ fault }) => fault))]
  const head = ['fault', ...played.map(({ label }) => label)]
  const rows = faults.map((fault) => [
    fault,
    ...played.map(({ id }) => cell(records.find((record) => record.id === `others/${id}/${fault}`))),
  ])
  const lines = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
  return `Seed ${seed}.\n\n${lines.join('\n')}`
}

function cell(record) {
  if (record === undefined) return ''
  const { verdicts } = record
  const [only] = verdicts
  // Its clients did not even start, or the lab was stopped before: nothing is known of it.
  if (verdicts.length === 1 && only.seen !== 'broke') return 'not run'
  const broke = verdicts.filter(({ seen }) => seen === 'broke')
  const undecided = verdicts.filter(({ seen }) => seen === 'unknown')
  const words = [
    ...broke.map(({ check, why = '' }) =>
      why.startsWith('Outside of every fault') ? `**${check}** †` : `**${check}**`,
    ),
    ...undecided.map(({ check }) => `${check} ?`),
  ]
  return words.length === 0 ? 'held' : words.join(', ')
}

/** The settings of each, the table, and the first words about everything that broke. */
export function writeTable(records, seed) {
  const page = readFileSync(DOC, 'utf8')
  const [from, to] = MARKS.map((mark) => page.indexOf(mark))
  if (from === -1 || to === -1) throw new Error('docs/lab-others.md has no place for the table')
  const settings = OTHERS.map(({ label, told }) => `| ${label} | ${told} |`)
  const broke = records.flatMap(({ store, fault, verdicts }) =>
    verdicts
      .filter(({ seen }) => seen === 'broke')
      .map(({ check, why = '' }) => `| ${store} | ${fault} | ${check} | ${plain(why)} |`),
  )
  const text = [
    '| library | settings |\n|---|---|',
    ...settings,
    '',
    othersTable(records, seed),
    '',
    '| library | fault | check | the first of what was seen |\n|---|---|---|---|',
    ...broke,
  ].join('\n')
  writeFileSync(DOC, `${page.slice(0, from + MARKS[0].length)}\n\n${text}\n\n${page.slice(to)}`)
}

const plain = (why) => why.replaceAll('|', '\\|').replaceAll('\n', ' ')
