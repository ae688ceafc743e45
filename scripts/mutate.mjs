#!/usr/bin/env node
// How much do the fast tests see? Puts single-point mistakes into copies of the tree and runs the fast tests on each:
//   npm run mutate -- --seed 7 --sample 200 [--only runtime,src/core/vote-cell.ts] [--workers 2] [--log FILE] [--most SECONDS]
// The same seed gives the same sample of the same sources. All mistakes of a sample are in each copy, behind switches (mutation/switches.mjs). A
// first run, with none switched on, tells which test files come past which of them, and how long those take. Then each is switched on alone,
// and those files run, the likeliest and shortest first, until one fails; the long ones only when all mistakes had the short ones. A file that
// does not come past a mistake cannot notice it.
// A mistake that no test notices is listed, unless scripts/mutation/equivalent.json says why it is none. Not part of `npm test`.
import { createHash } from 'node:crypto'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { parseAst } from 'vitest/node'

import { keyOf, Log } from './mutation/log.mjs'
import { pointsOf } from './mutation/points.mjs'
import { withSwitches } from './mutation/switches.mjs'
import { end, running, Tests } from './mutation/tests.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const EQUIVALENT = join(ROOT, 'scripts/mutation/equivalent.json')
const COPIED = [
  'src',
  'test',
  'lab',
  'scripts',
  'docs',
  'bench',
  'examples',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
  'README.md',
  'CHANGELOG.md',
]

/** What is changed, and the tests that are most likely to notice: they run first, and mostly suffice. */
const FOLDERS = {
  core: {
    path: 'src/core',
    tests: ['test/unit/core', 'test/unit/stores', 'test/unit/locks', 'test/unit/runtime'],
  },
  runtime: { path: 'src/runtime', tests: ['test/unit/runtime', 'test/unit/locks'] },
  locks: { path: 'src/locks', tests: ['test/unit/locks'] },
  recipes: { path: 'src/recipes', tests: ['test/unit/recipes'] },
  memory: { path: 'src/stores/memory', tests: ['test/unit/stores'] },
  quorum: { path: 'src/stores/quorum', tests: ['test/unit/stores/quorum'] },
}

const { values } = parseArgs({
  options: {
    /** One, or several with commas: each has a sample and a report of its own, and all share the first run. */
    seed: { type: 'string', default: '1' },
    /** How many of each seed. */
    sample: { type: 'string', default: '200' },
    /** Of the sample, only these folders or files. */
    only: { type: 'string' },
    workers: { type: 'string', default: '2' },
    /** Only these test files, without a first run: for whoever writes them. */
    tests: { type: 'string' },
    /** What was noticed according to it is not tried again; a run that was broken off goes on. */
    log: { type: 'string' },
    /** Seconds after which no further one is begun. With a log, the next run goes on. */
    for: { type: 'string', default: 'Infinity' },
    /** Files that take longer than this together (unmutated) are not tried on one mistake: quicker, and a lower bound. */
    most: { type: 'string', default: 'Infinity' },
  },
})

/** A run counts as hanging, and so as noticed, after so long: many times what it takes without a mistake. */
const limitFor = (ms) => 30_000 + 10 * ms
/** Together so many milliseconds of test files are tried at a time. */
const ROUNDS = [2_000, 10_000, Infinity]
/** Longer ones only when every mistake has had the others: who works off the survivors sees them early. */
const isShort = ({ ms }) => ms <= 10_000

/** The fast tests but those of the package's files. Few at a time in one thread: imports are half of what they cost. */
const CONFIG = `import base from './vitest.config.ts'
const { include, exclude } = base.test.projects[0].test
export default {
  resolve: base.resolve,
  test: {
    include, exclude: [...exclude, 'test/package/**', '**/node_modules/**'],
    setupFiles: ['scripts/mutation/active.mjs'],
    pool: 'threads', isolate: false, maxWorkers: 1,
    // With all mistakes built in, the random programs take three times as long.
    testTimeout: 60_000,
  },
}
`

function sourcesIn(path) {
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.gen.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)))
    .sort()
}

const textOf = (file) => readFileSync(join(ROOT, file), 'utf8')

/** Whether it is a program at all, and a place in it that runs. */
function isValid(mutant) {
  try {
    const { text, without } = withSwitches(textOf(mutant.file), [{ ...mutant, id: 0 }])
    if (without.size > 0) return false
    parseAst(text, { lang: 'ts' })
    return true
  } catch {
    return false
  }
}

/** Every possible mistake, each as data. */
function allMutants() {
  return Object.entries(FOLDERS).flatMap(([folder, { path }]) =>
    sourcesIn(path).flatMap((file) => pointsOf(textOf(file)).map((point) => ({ folder, file, ...point }))),
  )
}

/** A sample without repetition, the same for the same seed. */
function sampleOf(list, size, seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32
  }
  const rest = [...list]
  const sample = []
  while (sample.length < size && rest.length > 0) {
    const [mutant] = rest.splice(Math.floor(next() * rest.length), 1)
    if (isValid(mutant)) sample.push(mutant)
  }
  return sample
}

const SEEDS = values.seed.split(',').map(Number)
const SIZES = values.sample.split(',').map(Number)

/** The samples of all seeds, each mistake once, with the seeds that it is of. */
function samples() {
  const all = allMutants()
  const seedsOf = new Map()
  SEEDS.forEach((seed, at) => {
    for (const mutant of sampleOf(all, SIZES[at] ?? SIZES.at(-1), seed))
      seedsOf.set(mutant, [...(seedsOf.get(mutant) ?? []), seed])
  })
  return [...seedsOf].map(([mutant, seeds], at) => ({ ...mutant, seeds, id: at + 1 }))
}

function wanted({ folder, file }) {
  return values.only === undefined || values.only.split(',').some((each) => each === folder || each === file)
}

function copyOfTree(sample) {
  // By its real path: that is how vitest names its files.
  const to = realpathSync(mkdtempSync(join(ROOT, 'node_modules/.mutate-')))
  for (const part of COPIED)
    cpSync(join(ROOT, part), join(to, part), {
      recursive: true,
      filter: (path) => !path.includes('/node_modules'),
    })
  symlinkSync(join(ROOT, 'node_modules'), join(to, 'node_modules'))
  writeFileSync(join(to, 'vitest.mutate.config.ts'), CONFIG)
  for (const file of new Set(sample.map((each) => each.file))) {
    const { text } = withSwitches(
      textOf(file),
      sample.filter((each) => each.file === file),
    )
    parseAst(text, { lang: 'ts' })
    writeFileSync(join(to, file), text)
  }
  return to
}

/** Which test files come past which mistakes, and how long each takes. */
async function firstRun(tree) {
  const reachedTo = join(tree, '.reached.jsonl')
  const took = await mustPass(new Tests(tree), { reachedTo })
  const files = readFileSync(reachedTo, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  // A module is loaded once for all files: what runs then, every file may come past that runs alone.
  const loading = files.flatMap((each) => each.loading)
  const reached = files.map(({ file, reached }) => [
    relative(tree, file),
    [...new Set([...reached, ...loading])],
  ])
  return { reached: Object.fromEntries(reached), took: Object.fromEntries(took) }
}

/** Without any mistake. A test that fails beside other work is repeated alone before that is believed. */
async function mustPass(tests, mutant) {
  const { failed, took } = await tests.run({ mutant, bail: 0, limit: 1_800_000 })
  const files = [...new Set(failed.map((each) => each.split(' > ')[0]))]
  const again =
    files.length === 0 ? failed : (await tests.run({ mutant, files, bail: 0, limit: 600_000 })).failed
  tests.stop()
  if (again.length > 0) throw new Error(`The tests fail without any mistake: ${again.join('; ')}`)
  return took
}

function hashOf(sample) {
  const hash = createHash('sha256').update(JSON.stringify(sample))
  for (const path of ['src', 'test', 'scripts/mutation/active.mjs', 'vitest.config.ts']) {
    const files = path.includes('.') ? [path] : filesIn(path)
    for (const file of files) hash.update(file).update(textOf(file))
  }
  return hash.digest('hex').slice(0, 16)
}

function filesIn(path) {
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)))
    .sort()
}

const filesPast = ({ id }, { reached }) => Object.keys(reached).filter((file) => reached[file].includes(id))

/** Test files in the order in which they are tried, in rounds. */
function roundsFor(mutant, { reached, took }, log) {
  const kills = new Map()
  for (const { by, file } of log.entries) {
    if (typeof by !== 'string' || file !== mutant.file) continue
    const [test] = by.split(' > ')
    kills.set(test, (kills.get(test) ?? 0) + 1)
  }
  const { tests } = FOLDERS[mutant.folder]
  const near = (file) => (tests.some((each) => file.startsWith(each)) ? 1 : 5)
  const rank = (file) => (((took[file] ?? 0) + 100) * near(file)) / (1 + 2 * (kills.get(file) ?? 0))
  let files = filesPast(mutant, { reached }).sort((a, b) => rank(a) - rank(b))
  const rounds = []
  let all = 0
  for (const most of ROUNDS) {
    const round = { files: [], ms: 0 }
    files = files.filter((file) => {
      const ms = took[file]
      if (round.ms + ms > most || (all > 0 && all + ms > Number(values.most) * 1000)) return true
      round.ms += ms
      all += ms
      round.files.push(file)
      return false
    })
    if (round.files.length > 0) rounds.push(round)
  }
  return rounds
}

/** By which test it is noticed, or null. */
async function noticed(tests, mutant, rounds) {
  for (const { files, ms } of rounds) {
    const limit = limitFor(ms)
    const { failed, late } = await tests.run({ mutant: { active: mutant.id }, files, bail: 1, limit })
    if (failed.length === 0) continue
    // A test that took too long: because of the mistake, if it does not without.
    if (late !== true || (await tests.run({ mutant: {}, files, bail: 1, limit })).failed.length === 0)
      return failed[0]
  }
  return null
}

const percent = (part, whole) => (whole === 0 ? '–' : `${Math.round((100 * part) / whole)} %`)

function report(results, reasons) {
  const isEquivalent = ({ file, before, from, to }) =>
    reasons.some(
      (each) => each.file === file && each.line === before.trim() && each.from === from && each.to === to,
    )
  console.log('\nfolder    mutants  noticed  equivalent  score')
  for (const folder of [...Object.keys(FOLDERS), 'all']) {
    const own = results.filter((each) => folder === 'all' || each.folder === folder)
    if (own.length === 0) continue
    const noticed = own.filter(({ by }) => by !== null).length
    const equivalent = own.filter((each) => each.by === null && isEquivalent(each)).length
    const cells = [own.length, noticed, equivalent].map((count) => String(count).padStart(7)).join('  ')
    console.log(`${folder.padEnd(8)}${cells}     ${percent(noticed, own.length - equivalent)}`)
  }
  const open = results.filter((each) => each.by === null && !isEquivalent(each))
  console.log(`\n${open.length} that nobody noticed:`)
  for (const { file, line, from, to, before } of open)
    console.log(`${file}:${line}  ${from} → ${to}\n    ${before.trim()}`)
}

async function main() {
  const sample = samples().filter(wanted)
  const log = new Log(values.log, hashOf(sample))
  const results = []
  const rest = []
  for (const mutant of sample) {
    const known = values.tests === undefined ? log.of(mutant) : undefined
    if (known === undefined) rest.push(mutant)
    else results.push({ ...mutant, by: known.by })
  }
  const trees = []
  const stop = () => {
    for (const child of running) end(child)
    for (const tree of trees) rmSync(tree, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
      stop()
      process.exit(130)
    })
  try {
    for (let i = 0; i < Math.min(Number(values.workers), rest.length); i++) trees.push(copyOfTree(sample))
    const only = values.tests?.split(',')
    if (only === undefined && rest.length > 0 && log.base === undefined)
      log.add({ kind: 'base', ...(await firstRun(trees[0])) })
    await Promise.all(
      trees.map(async (tree) => {
        const tests = new Tests(tree)
        while (rest.length > 0 && performance.now() < Number(values.for) * 1000) {
          const { long, ...mutant } = rest.shift()
          const { file, line, from, to } = mutant
          const rounds =
            long ?? (only === undefined ? roundsFor(mutant, log.base, log) : [{ files: only, ms: 10_000 }])
          const later = long === undefined ? rounds.splice(rounds.findLastIndex(isShort) + 1) : []
          const by = await noticed(tests, mutant, rounds)
          if (by === null && later.length > 0) {
            rest.push({ ...mutant, long: later })
            console.log(`not yet ${file}:${line}  ${from} → ${to}`)
            continue
          }
          results.push({ ...mutant, by })
          if (only === undefined) log.add({ kind: 'mutant', key: keyOf(mutant), file, by })
          console.log(
            `${results.length}/${sample.length} ${by === null ? 'SURVIVED' : 'noticed '} ${file}:${line}  ${from} → ${to}`,
          )
          console.log(
            by === null ? `    ${(only ?? filesPast(mutant, log.base)).length} test files` : `    ${by}`,
          )
        }
        tests.stop()
      }),
    )
    if (rest.length > 0) {
      console.log(`\n${rest.length} are left: the next run with this log goes on`)
      process.exitCode = 75
      return
    }
    const reasons = JSON.parse(readFileSync(EQUIVALENT, 'utf8'))
    for (const seed of SEEDS) {
      const own = results.filter(({ seeds }) => seeds.includes(seed))
      console.log(`\nseed ${seed}, ${own.length} mistakes`)
      report(
        own.sort((a, b) => (a.file + a.line < b.file + b.line ? -1 : 1)),
        reasons,
      )
    }
  } finally {
    stop()
  }
}

await main()
