#!/usr/bin/env node
// How much do the fast tests see? Puts single-point mistakes into copies of the tree, one at a time, and runs the fast tests on each:
//   npm run mutate -- --seed 7 --sample 200 [--only runtime] [--workers 2] [--related]
// The same seed gives the same sample of the same sources. A mistake that no test notices is listed, unless scripts/mutation/equivalent.json
// says why it is none. Not part of `npm test`: two hundred take an hour on two cores.
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, stripVTControlCharacters } from 'node:util'

import { parseAst } from 'vitest/node'

import { pointsOf } from './mutation/points.mjs'

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
    tests: [
      'test/unit/core',
      'test/unit/stores',
      'test/unit/locks',
      'test/unit/runtime',
      'test/unit/testkit/cases.test.ts',
    ],
  },
  runtime: { path: 'src/runtime', tests: ['test/unit/runtime', 'test/unit/locks', 'test/property'] },
  locks: { path: 'src/locks', tests: ['test/unit/locks', 'test/unit/runtime', 'test/property'] },
  recipes: { path: 'src/recipes', tests: ['test/unit/recipes'] },
  memory: {
    path: 'src/stores/memory',
    tests: ['test/unit/stores', 'test/unit/testkit/cases.test.ts', 'test/conformance/quorum-memory.test.ts'],
  },
  quorum: {
    path: 'src/stores/quorum',
    tests: ['test/conformance/quorum-memory.test.ts', 'test/lab/sim/short.test.ts'],
  },
}

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    sample: { type: 'string', default: '200' },
    only: { type: 'string' },
    workers: { type: 'string', default: String(availableParallelism()) },
    /** Only the tests that are likely to notice: quicker, and a lower bound. */
    related: { type: 'boolean', default: false },
    /** Seconds after which a run that does not end counts as noticed. */
    timeout: { type: 'string', default: '600' },
  },
})

/** The same tests every time: the seeds of random ones are given. */
const env = { ...process.env, PROGRAM_FIRST: '1000000', SIM_FIRST: '1000000', FORCE_COLOR: '0' }

function sourcesIn(path) {
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.gen.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)))
    .sort()
}

/** Whether it is a program at all. */
function isValid({ file, line, after }) {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
  try {
    parseAst(lines.with(line - 1, after).join('\n'), { lang: 'ts' })
    return true
  } catch {
    return false
  }
}

/** Every possible mistake, each as data. */
function allMutants() {
  return Object.entries(FOLDERS)
    .filter(([folder]) => values.only === undefined || folder === values.only)
    .flatMap(([folder, { path, tests }]) =>
      sourcesIn(path).flatMap((file) =>
        pointsOf(readFileSync(join(ROOT, file), 'utf8')).map((point) => ({ folder, file, tests, ...point })),
      ),
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

function copyOfTree() {
  const to = mkdtempSync(join(ROOT, 'node_modules/.mutate-'))
  for (const part of COPIED)
    cpSync(join(ROOT, part), join(to, part), {
      recursive: true,
      filter: (path) => !path.includes('/node_modules'),
    })
  symlinkSync(join(ROOT, 'node_modules'), join(to, 'node_modules'))
  return to
}

/** Few files, one after the other in one thread: their imports are half of what they cost. */
const FEW = ['--pool', 'threads', '--no-isolate', '--maxWorkers', '1']

/** What is true of the package's files is none of this. */
const NOT_THE_PACKAGE = ['--exclude', 'test/package/**']

/** Null when the tests pass, else what failed. Its own process group, so that nothing of it outlives it. */
function failing(tree, tests) {
  return new Promise((resolve) => {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
    const how = tests.length > 0 ? FEW : NOT_THE_PACKAGE
    const args = [vitest, 'run', '--project', 'fast', '--bail', '1', '--reporter', 'dot', ...how, ...tests]
    const child = spawn(process.execPath, args, {
      cwd: tree,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    let late = false
    const timer = setTimeout(
      () => {
        late = true
        process.kill(-Number(child.pid), 'SIGKILL')
      },
      Number(values.timeout) * 1000,
    )
    child.on('close', (code) => {
      clearTimeout(timer)
      const test = /^ ?FAIL +(.*)$/m.exec(stripVTControlCharacters(output))?.[1]
      resolve(code === 0 ? null : late ? 'no end in time' : (test ?? 'the tests do not start'))
    })
  })
}

/** By which test it is noticed, or null. */
async function noticed(tree, { file, line, before, after, tests }) {
  const path = join(tree, file)
  const text = readFileSync(path, 'utf8')
  const lines = text.split('\n')
  if (lines[line - 1] !== before) throw new Error(`${file}:${line} is not what it was`)
  writeFileSync(path, lines.with(line - 1, after).join('\n'))
  try {
    return (await failing(tree, tests)) ?? (values.related ? null : await failing(tree, []))
  } finally {
    writeFileSync(path, text)
  }
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
    const noticed = own.filter(({ survived }) => !survived).length
    const equivalent = own.filter((each) => each.survived && isEquivalent(each)).length
    const cells = [own.length, noticed, equivalent].map((count) => String(count).padStart(7)).join('  ')
    console.log(`${folder.padEnd(8)}${cells}     ${percent(noticed, own.length - equivalent)}`)
  }
  const open = results.filter((each) => each.survived && !isEquivalent(each))
  console.log(`\n${open.length} that nobody noticed:`)
  for (const { file, line, from, to, before } of open)
    console.log(`${file}:${line}  ${from} → ${to}\n    ${before.trim()}`)
}

async function main() {
  const sample = sampleOf(allMutants(), Number(values.sample), Number(values.seed))
  const trees = Array.from({ length: Number(values.workers) }, copyOfTree)
  const stop = () => {
    for (const tree of trees) rmSync(tree, { recursive: true, force: true })
  }
  process.on('SIGINT', () => {
    stop()
    process.exit(130)
  })
  try {
    const tests = values.related ? [...new Set(sample.flatMap((mutant) => mutant.tests))] : []
    const broken = await failing(trees[0], tests)
    if (broken !== null)
      throw new Error(`The tests fail without any mistake, nothing can be measured: ${broken}`)
    const rest = [...sample]
    const results = []
    await Promise.all(
      trees.map(async (tree) => {
        for (let mutant = rest.shift(); mutant !== undefined; mutant = rest.shift()) {
          const by = await noticed(tree, mutant)
          const survived = by === null
          results.push({ ...mutant, survived })
          const { file, line, from, to } = mutant
          console.log(
            `${results.length}/${sample.length} ${survived ? 'SURVIVED' : 'noticed '} ${file}:${line}  ${from} → ${to}`,
          )
          if (!survived) console.log(`    ${by}`)
        }
      }),
    )
    console.log(
      `\nseed ${values.seed}, ${sample.length} mistakes${values.related ? ', related tests only' : ''}`,
    )
    report(
      results.sort((a, b) => (a.file + a.line < b.file + b.line ? -1 : 1)),
      JSON.parse(readFileSync(EQUIVALENT, 'utf8')),
    )
  } finally {
    stop()
  }
}

await main()
