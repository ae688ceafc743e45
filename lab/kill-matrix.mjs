#!/usr/bin/env node
// Puts known bugs into a copy of the build, one after the other, and requires that the simulation catches each by the
// check that is named for it: node lab/kill-matrix.mjs [--dist DIR] [--only ID] [--write]
// HOLDFAST_TEST=full looks at the seeds from the first on, and at all of them without any bug.
// A check that has never failed proves nothing. `--write` puts the table into docs/correctness.md.
import { execFile, execFileSync } from 'node:child_process'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

import { doubtMutants } from './mutants/doubt.mjs'
import { endMutants } from './mutants/ends.mjs'
import { meetingMutants } from './mutants/meeting.mjs'
import { promiseMutants } from './mutants/promises.mjs'
import { storeMutants } from './mutants/store.mjs'
import { upkeepMutants } from './mutants/upkeep.mjs'
import { validityMutants } from './mutants/validity.mjs'

/**
 * @typedef {{ file: string, find: string, replace: string }} Edit in a file of the build; `find` occurs there once
 * @typedef {{ id: string, bugClass: string, edits: Edit[], scenario: string, check: string, seeds: number, seed?: number }} Mutant
 *   it is caught within `seeds`; by `seed` when last seen, which is therefore looked at first
 * @typedef {{ mutant: Mutant, seed: number | null, why?: string }} Caught
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SELF = fileURLToPath(import.meta.url)
const DOC = join(ROOT, 'docs/correctness.md')
const MARKS = ['<!-- kill matrix -->', '<!-- end of kill matrix -->']
const TIMEOUT_MS = 120_000
const AT_ONCE = 2
const FULL = process.env.HOLDFAST_TEST === 'full'
/** Instead of a scenario: the random programs of src/lab/sim/programs. */
const PROGRAMS = 'programs'

export const mutants = [
  ...storeMutants,
  ...validityMutants,
  ...upkeepMutants,
  ...meetingMutants,
  ...promiseMutants,
  ...endMutants,
  ...doubtMutants,
]

/** The folders of the build that a simulation needs. */
const STORES = ['memory', 'redis', 'zookeeper', 'memcached', 'quorum']
const PARTS = [
  'core',
  'platform',
  'transport',
  'runtime',
  'locks',
  'testkit',
  'lab',
  ...STORES.map((store) => `stores/${store}`),
]

/** As in our own, and what is imported by `#` from the mutant's own files. */
function packageOf() {
  const { type, imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return JSON.stringify({ type, imports }).replaceAll('"./dist/', '"./')
}

/** Compiles the sources into a folder of its own, so that nobody's build is touched. */
export function build(to) {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = [
    '--outDir',
    to,
    '--declaration',
    'false',
    '--isolatedDeclarations',
    'false',
    '--sourceMap',
    'false',
    '--inlineSources',
    'false',
  ]
  execFileSync(process.execPath, [tsc, '-p', join(ROOT, 'tsconfig.build.json'), ...options], { cwd: ROOT })
  writeFileSync(join(to, 'package.json'), packageOf())
}

/** Text with the edits of a mutant in it; throws where the build has changed so that one does not fit any more. */
export function edited(text, { file, find, replace }) {
  const count = text.split(find).length - 1
  if (count !== 1)
    throw new Error(`${file}: "${find}" occurs ${count} times, not once: the mutant has to follow the code`)
  return text.replace(find, () => replace)
}

/** Links instead of copies: a mutant shares all files but those that it changes. */
function link(from, to) {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) link(source, target)
    else if (entry.name.endsWith('.js')) linkSync(source, target)
  }
}

function mutate(dist, to, { edits }) {
  for (const part of PARTS) link(join(dist, part), join(to, part))
  writeFileSync(join(to, 'package.json'), packageOf())
  for (const edit of edits) {
    const path = join(to, edit.file)
    const text = edited(readFileSync(path, 'utf8'), edit)
    // The file is the build's own until it is replaced.
    rmSync(path)
    writeFileSync(path, text)
  }
}

const upTo = (count) => Array.from({ length: count }, (_, index) => index + 1)

function run(dist, { scenario, check }, seeds) {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' }
    execFile(
      process.execPath,
      [SELF, 'seeds', dist, scenario, check, seeds.join()],
      options,
      (error, stdout, stderr) => {
        if (error !== null) return reject(new Error(`${scenario}: ${error.message}\n${stderr}`))
        return resolve(JSON.parse(stdout.trim().split('\n').at(-1)))
      },
    )
  })
}

/** Calls the function for each thing, a few at a time. */
async function forEachAtOnce(things, call) {
  const rest = [...things]
  const worker = async () => {
    for (let thing = rest.shift(); thing !== undefined; thing = rest.shift()) await call(thing)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

/**
 * @param {{ dist: string, only?: string, onResult?: (caught: Caught) => void }} options
 * @returns {Promise<Caught[]>} in the order of the mutants
 */
export async function killAll({ dist, only, onResult = () => undefined }) {
  const work = mkdtempSync(join(dist, '../mutants-'))
  const caught = new Map()
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(work, 'node_modules'))
    await forEachAtOnce(
      mutants.filter(({ id }) => only === undefined || id === only),
      async (mutant) => {
        const place = join(work, mutant.id)
        mutate(dist, place, mutant)
        const known = FULL || mutant.seed === undefined ? [] : [mutant.seed]
        const { seed, why } = await run(place, mutant, [...known, ...upTo(mutant.seeds)])
        rmSync(place, { recursive: true })
        caught.set(mutant.id, { mutant, seed, why })
        onResult({ mutant, seed, why })
      },
    )
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return mutants.flatMap(({ id }) => caught.get(id) ?? [])
}

/** The same seeds without any bug: nothing may break. Returns what did. */
export async function checkUnchanged(dist, caught) {
  const seedsOf = new Map()
  for (const { mutant, seed } of caught) {
    if (seed === null) continue
    const seeds = seedsOf.get(mutant.scenario) ?? new Set()
    seedsOf.set(mutant.scenario, seeds)
    for (const one of FULL ? upTo(seed) : [seed]) seeds.add(one)
  }
  const broken = []
  await forEachAtOnce(seedsOf, async ([scenario, seeds]) => {
    const { seed, check, why } = await run(dist, { scenario, check: '*' }, [...seeds])
    if (seed !== null) broken.push({ scenario, seed, check, why })
  })
  return broken
}

/** The table for docs/correctness.md. */
function table() {
  const rows = mutants.map(
    ({ id, bugClass, scenario, check, seeds }) =>
      `| ${bugClass} | \`${id}\` | ${check} | \`${scenario}\` | ${seeds} |`,
  )
  return ['| bug class | mutant | caught by | in | within seeds |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  )
}

/** The page with the table in its place. */
export function withTable(page) {
  const [from, to] = MARKS.map((mark) => page.indexOf(mark))
  if (from === -1 || to === -1) throw new Error('docs/correctness.md has no place for the kill matrix')
  return `${page.slice(0, from + MARKS[0].length)}\n\n${table()}\n\n${page.slice(to)}`
}

/** Plays one seed in a build: of a scenario, or the program of that seed. Returns what broke and should hold. */
async function playerIn(dist, scenario) {
  const load = (file) => import(new URL(file, pathToFileURL(`${dist}/`)).href)
  if (scenario === PROGRAMS) {
    const { play, programFrom } = await load('lab/sim/programs/index.js')
    return async (seed) => {
      const { findings } = await play(programFrom(seed))
      return findings.map(({ check, message }) => ({ check, why: message }))
    }
  }
  const { simulate } = await load('lab/sim/index.js')
  return async (seed) => {
    const { verdicts } = await simulate({ scenario, seed })
    return verdicts.filter(({ expected, seen }) => expected === 'holds' && seen === 'broke')
  }
}

/**
 * In a process of its own: seeds of one scenario in a build, until a check breaks that should hold. `*`: any check.
 * Prints one line of JSON.
 */
async function runSeeds(dist, scenario, check, seeds) {
  const play = await playerIn(dist, scenario)
  let found = { seed: null }
  for (const seed of seeds.split(',').map(Number)) {
    const broken = (await play(seed)).find((one) => check === '*' || check === one.check)
    if (broken === undefined) continue
    found = { seed, check: broken.check, why: broken.why }
    break
  }
  // A mutant may leave timers behind: nobody waits for them.
  process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0))
}

async function main() {
  const { values } = parseArgs({
    options: {
      dist: { type: 'string' },
      only: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  })
  if (values.write) return writeFileSync(DOC, withTable(readFileSync(DOC, 'utf8')))
  const own = mkdtempSync(join(ROOT, 'node_modules/.kill-matrix-'))
  const dist = values.dist ?? join(own, 'dist')
  try {
    if (values.dist === undefined) build(dist)
    const started = performance.now()
    let escaped = 0
    const caught = await killAll({
      dist,
      only: values.only,
      onResult({ mutant, seed, why = '' }) {
        if (seed === null) escaped += 1
        const end =
          seed === null ? `NOT caught in ${mutant.seeds} seeds` : `${mutant.check}, seed ${seed}: ${why}`
        console.log(`${mutant.id}: ${end}`.slice(0, 200))
      },
    })
    const broken = await checkUnchanged(dist, caught)
    for (const { scenario, seed, check } of broken)
      console.log(`without any bug: ${scenario}, seed ${seed}: ${check}`)
    console.log(
      `${mutants.length} mutants, ${escaped} not caught, ${Math.round((performance.now() - started) / 1000)} s`,
    )
    process.exitCode = escaped + broken.length === 0 ? 0 : 1
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

if (process.argv[1] === SELF) {
  const [, , first, ...rest] = process.argv
  await (first === 'seeds' ? runSeeds(...rest) : main())
}
