// How much of the runtime and the locks the simulation executes, by itself: npm run lab -- --coverage
// What it does not is named in docs/guides/simulation.md, with reasons.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DOC = join(ROOT, 'docs/guides/simulation.md')
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const TESTS = ['test/lab/sim/short.test.ts', 'test/property/programs.test.ts']
const FOLDERS = ['src/runtime/**', 'src/locks/**']

/** Prints lines and branches in per cent, and where the rest is. Returns an exit code. */
export function coverage() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-coverage-'))
  const settings = [
    'enabled',
    'provider=v8',
    'reporter=json',
    'reporter=json-summary',
    'reportOnFailure',
    `reportsDirectory=${dir}`,
  ]
  const flags = [...settings, ...FOLDERS.map((folder) => `include=${folder}`)].map(
    (one) => `--coverage.${one}`,
  )
  let code = 0
  try {
    execFileSync(process.execPath, [VITEST, 'run', ...TESTS, ...flags], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch (error) {
    code = error.status ?? 1
  }
  try {
    const read = (file) => JSON.parse(readFileSync(join(dir, file), 'utf8'))
    const { lines, branches } = read('coverage-summary.json').total
    console.log(`lines ${lines.pct} %, branches ${branches.pct} %`)
    const rest = within(read('coverage-summary.json'))
    console.log(`without ${OUTSIDE.join(', ')}: lines ${rest.lines} %, branches ${rest.branches} %`)
    const missing = Object.entries(read('coverage-final.json')).flatMap(([file, facts]) => {
      const missed = missedIn(facts)
      return missed.length === 0 ? [] : [{ file: relative(ROOT, file), missed }]
    })
    for (const { file, missed } of missing) console.log(`${file}: ${missed.join(', ')}`)
    const wrong = notAsTold({
      lines: lines.pct,
      branches: branches.pct,
      files: missing.map(({ file }) => file),
    })
    for (const line of wrong) console.error(line)
    return wrong.length > 0 ? 1 : code
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** What the simulation stands in for, or what a machine does when it likes: no seed can get there. */
const OUTSIDE = ['env.ts', 'close-on.ts', 'leak-watch.ts']

/** Of what a seed can get to. */
function within({ total: _, ...files }) {
  const inside = Object.keys(files).filter((file) => !OUTSIDE.includes(basename(file)))
  const share = (what) => {
    const sum = (count) => inside.reduce((all, file) => all + files[file][what][count], 0)
    return Math.floor((sum('covered') / sum('total')) * 1e4) / 100
  }
  return { lines: share('lines'), branches: share('branches') }
}

/** Fresh seeds execute a little more or less each time. */
const MARGIN = 0.4

/** What docs/guides/simulation.md says otherwise: the numbers, and the files in which something is not executed. */
function notAsTold({ lines, branches, files }) {
  const page = readFileSync(DOC, 'utf8')
  const [, ...told] = /([\d.]+) % of the lines, ([\d.]+) % of the\s+branches/.exec(page) ?? []
  const part = page.slice(page.indexOf('## What it executes'))
  return [
    ...[
      ['lines', lines, Number(told[0])],
      ['branches', branches, Number(told[1])],
    ]
      .filter(([, seen, said]) => !(seen >= said - MARGIN))
      .map(([what, seen, said]) => `${what}: ${seen} %, and the guide says ${said} %`),
    ...files
      .filter((file) => !part.includes(`\`${basename(file)}\``))
      .map((file) => `${file} is not named in the guide`),
  ]
}

/** Lines on which something was never done. */
function missedIn({ s, statementMap, b, branchMap }) {
  const statements = Object.keys(s).filter((id) => s[id] === 0)
  const branches = Object.keys(b).flatMap((id) =>
    b[id].flatMap((count, at) => (count === 0 ? [[id, at]] : [])),
  )
  const lines = [
    ...statements.map((id) => statementMap[id].start.line),
    ...branches.map(([id, at]) => branchMap[id].locations[at].start.line ?? branchMap[id].loc.start.line),
  ]
  return [...new Set(lines)].sort((a, b) => a - b)
}
