// The repository's tests on one other server, and what came out.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { step } from './steps.mjs'

const HERE = fileURLToPath(new URL('../..', import.meta.url))
const VITEST = join(HERE, 'node_modules/vitest/vitest.mjs')
const PROJECTS = ['--project', 'servers', '--project', 'timed']

/** What a file of tests is about, by its path; the first that fits. */
const SUITES = [
  ['conformance', /^test\/conformance\//],
  ['differential', /differential/],
  ['interop', /curator|clients|driver-matrix|pgbouncer/],
  [
    'faults',
    /faults|sentinel|cluster|ensemble|virtual-address|ended-work|worn|ghosts|listeners|resent|replicas/,
  ],
  ['others', /./],
]

export const SUITE_NAMES = SUITES.map(([name]) => name)

export const suiteOf = (path) => SUITES.find(([, pattern]) => pattern.test(path))[0]

/**
 * Runs the tests of an entry, and those files in which something failed once more, by themselves: they measure time, and a
 * machine may have been busy. What fails twice has failed.
 * @param {import('./entries.mjs').Entry} entry
 * @param {{ dir: string, again: boolean }} how `again`: only what failed when it was last run
 * @returns {Promise<{ suites: Record<string, import('./run.mjs').Counts>, failures: string[] }>}
 */
export async function runTests(entry, { dir, again }) {
  const kept = join(dir, 'results.json')
  const first =
    again && existsSync(kept) ? JSON.parse(readFileSync(kept, 'utf8')) : await vitest(entry, dir, entry.tests)
  const failed = first.testResults.filter(({ status }) => status === 'failed').map(({ name }) => name)
  const second = failed.length === 0 ? { testResults: [] } : await vitest(entry, dir, failed)
  const result = { testResults: replaced(first.testResults, second.testResults) }
  writeFileSync(kept, JSON.stringify(result))
  return count(result)
}

const replaced = (old, now) => [
  ...old.filter(({ name }) => !now.some((other) => other.name === name)),
  ...now,
]

async function vitest(entry, dir, files) {
  const output = join(dir, 'last-run.json')
  rmSync(output, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`]
  await step(
    `${entry.id}: tests`,
    // One file at a time: a server that shares the machine with nothing else is late for nothing else's sake.
    [process.execPath, VITEST, 'run', ...PROJECTS, '--maxWorkers=1', ...reporters, ...files],
    {
      log: join(dir, 'tests.log'),
      minutes: 45,
      cwd: HERE,
      fails: true,
      env: { HOLDFAST_PROGRAMS: join(dir, 'bin'), NO_COLOR: '1' },
    },
  )
  return JSON.parse(readFileSync(output, 'utf8'))
}

/** Of Vitest's report. A file that could not even be read is a failure, and nothing that was left out has passed. */
export function count({ testResults }) {
  const suites = {}
  const failures = []
  for (const { name, status, message, assertionResults } of testResults) {
    const path = relative(HERE, name)
    const counts = (suites[suiteOf(path)] ??= { passed: 0, failed: 0, skipped: 0 })
    for (const { status: outcome, fullName } of assertionResults) {
      if (outcome === 'passed') counts.passed++
      else if (outcome === 'failed') {
        counts.failed++
        failures.push(`${path}: ${fullName}`)
      } else counts.skipped++
    }
    if (status === 'failed' && !assertionResults.some((one) => one.status === 'failed')) {
      counts.failed++
      failures.push(`${path}: ${message.split('\n')[0] || 'could not be run'}`)
    }
  }
  return { suites, failures }
}

/** What the server calls itself. */
export function versionOf(entry, { dir }) {
  if (entry.maven !== undefined) {
    const of = (name) => entry.maven.find((one) => one.includes(name))?.split(':')[2]
    return `${of(':zookeeper:')}, Curator ${of('curator')}`
  }
  const bin = join(dir, 'bin')
  const [program] = readdirSync(bin).filter((name) => !/install|init/.test(name))
  const said = execFileSync(join(bin, program), ['--version'], { encoding: 'utf8' })
  return /\d+\.\d+(\.\d+)?/.exec(said.replace(/^.*\bVer /, ''))[0]
}
