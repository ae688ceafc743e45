// What broke where, as a table for people.
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'

import { NEMESES } from '../../dist/lab/live/index.js'
import { OTHERS } from './index.mjs'

const DOC = fileURLToPath(new URL('../../docs/lab-others.md', import.meta.url))
const MARKS = ['<!-- what broke where -->', '<!-- end of what broke where -->']

/** Libraries across, faults down. */
export function othersTable(records) {
  const played = OTHERS.filter(({ id }) => records.some((record) => record.id.startsWith(`others/${id}/`)))
  const occurring = new Set(records.map(({ fault }) => fault))
  const faults = NEMESES.map(({ kind }) => kind).filter((kind) => occurring.has(kind))
  const head = ['fault', ...played.map(({ label }) => label)]
  const rows = faults.map((fault) => [
    fault,
    ...played.map(({ id }) => cell(records.find((record) => record.id === `others/${id}/${fault}`))),
  ])
  const lines = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
  const seeds = [...new Set(records.map(({ seed }) => seed))]
  return `Seed ${seeds.join(', ')}.\n\n${lines.join('\n')}`
}

function cell(record) {
  if (record === undefined) return ''
  const { verdicts } = record
  const [only] = verdicts
  // Its clients did not even start, or the lab was stopped before: nothing is known of it.
  if (verdicts.length === 1 && only.seen !== 'broke') return 'not run'
  const broke = brokenIn(record)
  const undecided = verdicts.filter(({ seen }) => seen === 'unknown')
  const words = [
    ...broke.map(({ check, why = '' }) =>
      why.startsWith('Outside of every fault') ? `**${check}** †` : `**${check}**`,
    ),
    ...undecided.map(({ check }) => `${check} ?`),
  ]
  return words.length === 0 ? 'held' : words.join(', ')
}

/** An order of the calls is not to be had where two held the lock: said once is enough. */
function brokenIn({ verdicts }) {
  const broke = verdicts.filter(({ seen }) => seen === 'broke')
  const twice = broke.some(({ check }) => check === 'exclusivity')
  return broke.filter(({ check }) => !(twice && check === 'linearizability'))
}

/** The settings of each, the table, and the first words about everything that broke. */
export function writeTable(records, date = new Date()) {
  const page = readFileSync(DOC, 'utf8')
  const [from, to] = MARKS.map((mark) => page.indexOf(mark))
  if (from === -1 || to === -1) throw new Error('docs/lab-others.md has no place for the table')
  const settings = OTHERS.map(({ label, told }) => `| ${label} | ${told} |`)
  const order = OTHERS.map(({ id }) => `others/${id}/`)
  const place = ({ id }) => order.findIndex((prefix) => id.startsWith(prefix))
  const broke = records
    .toSorted((a, b) => place(a) - place(b))
    .flatMap((record) =>
      brokenIn(record).map(
        ({ check, why = '' }) => `| ${record.store} | ${record.fault} | ${check} | ${plain(why)} |`,
      ),
    )
  const text = [
    `Made on ${date.toISOString().slice(0, 10)}, with Node ${process.version} on ${cpus().length} processors. ${othersTable(records)}`,
    '',
    '| library | settings |\n|---|---|',
    ...settings,
    '',
    '| library | fault | check | the first of what was seen |\n|---|---|---|---|',
    ...broke,
  ].join('\n')
  writeFileSync(DOC, `${page.slice(0, from + MARKS[0].length)}\n\n${text}\n\n${page.slice(to)}`)
}

const plain = (why) => why.replaceAll('|', '\\|').replaceAll('\n', ' ')
