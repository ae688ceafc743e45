// Runs this repository's tests on other servers than those of this machine: newer releases, in small roots of their own.
//
//   npm run matrix                                   all of them
//   npm run matrix -- --only redis-8.0,mysql-9.7     some
//   npm run matrix -- --list                         which there are
//
//   --cache <folder>   where roots are kept; default: holdfast/matrix in the user's cache folder
//   --fresh            make the roots anew: servers of a release that still moves may have moved
//   --again            only the test files in which something failed when they were last run
//   --no-docs          leave the table in docs/servers.md alone
//
// One that fails does not keep the others from running. Exit code 1 if anything failed, 2 if it was called wrongly.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { makeRoot, whyNoRoots } from './matrix/debian.mjs'
import { ENTRIES } from './matrix/entries.mjs'
import { makeJars, whyNoMaven } from './matrix/maven.mjs'
import { runTests, versionOf } from './matrix/run.mjs'
import { say } from './matrix/steps.mjs'
import { merge, rowOf } from './matrix/table.mjs'

const PAGE = fileURLToPath(new URL('../docs/servers.md', import.meta.url))

function options() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      list: { type: 'boolean', default: false },
      cache: { type: 'string' },
      fresh: { type: 'boolean', default: false },
      again: { type: 'boolean', default: false },
      'no-docs': { type: 'boolean', default: false },
    },
  })
  const ids = values.only?.split(',')
  const strange = ids?.filter((id) => !ENTRIES.some((entry) => entry.id === id)) ?? []
  if (strange.length > 0) throw new Error(`unknown: ${strange.join(', ')}; --list shows what there is`)
  const usual = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'holdfast', 'matrix')
  return {
    ...values,
    cache: resolve(values.cache ?? usual),
    entries: ENTRIES.filter(({ id }) => ids === undefined || ids.includes(id)),
  }
}

/** Makes what is not there yet. A folder without its last file is half of one, and is made anew. */
async function make(entry, { cache, fresh }) {
  const dir = join(cache, entry.id)
  const done = join(dir, 'done')
  mkdirSync(cache, { recursive: true })
  if (fresh || !existsSync(done)) {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir)
    const to = { cache, dir, log: join(dir, 'make.log') }
    await (entry.maven === undefined ? makeRoot(entry, to) : makeJars(entry, to))
    writeFileSync(done, '')
  }
  return dir
}

async function run(entry, given) {
  const problem = entry.maven === undefined ? whyNoRoots() : whyNoMaven()
  if (problem !== undefined) throw new Error(`${entry.id} cannot be had here: ${problem}`)
  const dir = await make(entry, given)
  const version = versionOf(entry, { dir })
  say(`${entry.id} is ${entry.server} ${version}`)
  const { suites, failures } = await runTests(entry, { dir, again: given.again })
  const date = new Date().toISOString().slice(0, 10)
  const row = rowOf(entry, { version, suites, date })
  console.log(row.cells.filter((cell) => cell !== '').join('  '))
  for (const failure of failures) console.log(`  FAIL ${failure}`)
  if (!given['no-docs'])
    writeFileSync(
      PAGE,
      merge(
        readFileSync(PAGE, 'utf8'),
        [row],
        ENTRIES.map(({ id }) => id),
      ),
    )
  return failures.length === 0
}

async function main() {
  const given = options()
  if (given.list) {
    for (const { id, server, release, maven } of given.entries)
      console.log(`${id.padEnd(20)}${server}, ${maven === undefined ? `Debian ${release}` : 'Maven'}`)
    return
  }
  for (const entry of given.entries) {
    const well = await run(entry, given).catch((error) => {
      console.log(`${entry.id}: ${error.message}`)
      return false
    })
    if (!well) process.exitCode = 1
  }
}

await main().catch((error) => {
  console.error(error.message)
  process.exitCode = 2
})
