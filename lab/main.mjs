#!/usr/bin/env node
// Everything that the lab can show: npm run lab [-- --only TEXT --html FILE --json FILE]
import { randomInt } from 'node:crypto'
import { appendFileSync, closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { parseArgs, styleText } from 'node:util'

import {
  exitCode,
  jsonPieces,
  judgeAgain,
  report,
  runAll,
  runLine,
  summary,
  tally,
} from '../dist/lab/index.js'
import { coverage } from './coverage.mjs'
import { faultTasks, OpenStage } from './faults.mjs'
import { otherTasks, unjudged } from './others/tasks.mjs'
import { othersTable, writeTable } from './others/table.mjs'
import { hasGo, withSecondOpinion } from './porcupine.mjs'
import { LabServers } from './servers.mjs'
import { simulationTasks } from './simulation.mjs'
import { specificationTasks } from './specification.mjs'
import { specimenTasks } from './specimens.mjs'

const USAGE = `usage: npm run lab -- [options]
  --only TEXT   only runs whose id contains this; several, with commas between
  --exactly ID  only this run
  --seeds N     how many fresh simulated runs; default 2000. Beside them, five of each that are always the same
  --seed N      the first fresh one of them, and the order of faults on real servers; default: a new one, which is printed
  --others      instead: other libraries through the same faults; needs npm's and Maven's packages
  --coverage    instead: how much of the runtime and the locks the simulation executes
  --write       with --others: put what was seen into docs/lab-others.md
  --read FILES  with --others: no runs; what --json of earlier ones wrote, with commas between
  --html FILE   a report to look at; opens without network
  --json FILE   everything that was seen, for programs
  --list        the ids, and nothing is run`

function options() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', default: '' },
        exactly: { type: 'string' },
        seeds: { type: 'string', default: '2000' },
        seed: { type: 'string' },
        others: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
        read: { type: 'string' },
        coverage: { type: 'boolean', default: false },
        html: { type: 'string' },
        json: { type: 'string' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (!values.help) return values
    console.log(USAGE)
    process.exit(0)
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`)
    process.exit(64)
  }
}

function whole(option, text) {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1) return number
  console.error(`${option} must be a whole number of at least 1\n${USAGE}`)
  process.exit(64)
}

const live = process.stdout.isTTY
const paint = (colour, text) => (live ? styleText(colour, text) : text)
/** One line that is written over while something runs, and a line for each run that is over. */
function show({ done, total, title, records }) {
  if (live) process.stdout.write('\r\u001b[K')
  for (const record of records) {
    console.log(`${runLine(record, paint)} [${record.fault}]`)
  }
  if (!live || done === total) return
  const full = Math.round((done / total) * 30)
  process.stdout.write(`${'█'.repeat(full)}${'·'.repeat(30 - full)} ${done}/${total} ${title}`)
}

/** Where there is Go, somebody else's checker says what it thinks of every run on real servers. */
function asksTwice(task) {
  const run = async (say) => {
    const made = await task.run(say)
    const records = Array.isArray(made) ? made : [made]
    const heard = hasGo() ? await Promise.all(records.map(withSecondOpinion)) : records
    // Evidence is large, and nobody reads it unless it is written down.
    return given.json === undefined ? heard.map(({ evidence: _, ...record }) => record) : heard
  }
  return { ...task, run }
}

/** Better to know before the runs than after them. */
function checkWritable(files) {
  for (const file of files) {
    try {
      if (file !== undefined) appendFileSync(file, '')
    } catch (error) {
      console.error(`${file} cannot be written: ${error.message}`)
      process.exit(71)
    }
  }
}

/** All of it is longer than a text may be. */
function writeJson(file, records) {
  const out = openSync(file, 'w')
  for (const piece of jsonPieces(records)) writeSync(out, piece)
  closeSync(out)
}

/** What was seen before, in several pieces maybe, judged by the rules of today. */
function readAgain(files) {
  const records = files.split(',').flatMap((file) => JSON.parse(readFileSync(file, 'utf8')))
  return records.map((record) => unjudged(judgeAgain(record)))
}

/** What does nothing here is not what was meant. */
function refuseUseless(values) {
  const useless = [
    [values.write && !values.others, '--write goes with --others'],
    [values.read !== undefined && !values.others, '--read goes with --others'],
    [values.exactly !== undefined && values.only !== '', '--exactly and --only exclude each other'],
    [
      values.coverage && (values.others || values.list || values.html || values.json),
      '--coverage goes alone',
    ],
    [
      values.read !== undefined && (values.html ?? values.json) !== undefined,
      '--read writes no --html and no --json',
    ],
  ]
  for (const [wrong, why] of useless) {
    if (!wrong) continue
    console.error(`${why}\n${USAGE}`)
    process.exit(64)
  }
}

const given = options()
refuseUseless(given)
if (given.coverage) process.exit(coverage())
const servers = new LabServers()
const seed = given.seed === undefined ? randomInt(1, 2 ** 31) : whole('--seed', given.seed)
const seeds = whole('--seeds', given.seeds)
const stages = new OpenStage()
const others = given.others || (given.exactly ?? given.only).startsWith('others/')
const texts = given.only.split(',')
const wanted = ({ id }) =>
  given.exactly === undefined ? texts.some((text) => id.includes(text)) : id === given.exactly
const everything = () => [
  ...specimenTasks(servers),
  ...specificationTasks(),
  ...simulationTasks({ seed, seeds }),
  ...faultTasks({ seed, wanted }).map(asksTwice),
]
const tasks = (others ? otherTasks({ seed, stages }) : everything()).filter(wanted)
if (given.read !== undefined) {
  const records = readAgain(given.read)
  console.log(othersTable(records))
  if (given.write) writeTable(records)
  process.exit(0)
}
if (given.list || tasks.length === 0) {
  console.log(
    tasks.length === 0
      ? `no run has "${given.exactly ?? given.only}" ${given.exactly === undefined ? 'in' : 'as'} its id`
      : tasks.map(({ id }) => id).join('\n'),
  )
  process.exit(tasks.length === 0 ? 64 : 0)
}
checkWritable([given.html, given.json])
console.log(`seed ${seed}`)
const stop = new AbortController()
let interrupted
let since = Infinity
for (const [name, number] of Object.entries({ SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 })) {
  process.on(name, () => {
    // npm passes on what the terminal sends as well; one that comes later is meant.
    if (performance.now() - since > 1000) process.exit(interrupted)
    if (interrupted !== undefined) return
    interrupted = 128 + number
    since = performance.now()
    console.error('\ninterrupted: what is under way is brought to its end, and no other run begins')
    stop.abort()
  })
}
const records = await runAll(tasks, { onProgress: show, signal: stop.signal })
await stages.close()
// Of those that were interrupted.
for (const { close } of tasks) await close?.()
await servers.stop()
console.log(`\n${others ? othersTable(records) : summary(records, paint)}`)
if (others && given.write) writeTable(records)
// First what the other can be made of again, should the disk be full.
if (given.json !== undefined) writeJson(given.json, records)
if (given.html !== undefined) writeFileSync(given.html, report(records))
process.exit(exitCode(tally(records), interrupted))
