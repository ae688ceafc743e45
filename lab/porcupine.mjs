// A second opinion: the calls of a run, given to Porcupine, a checker that is not ours. Where there is no Go there is none.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { callsOf } from '../dist/lab/live/index.js'

const FOLDER = fileURLToPath(new URL('porcupine/', import.meta.url))
const CACHE = fileURLToPath(new URL('../node_modules/.cache/holdfast-lab/', import.meta.url))
const run = promisify(execFile)

export function hasGo() {
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

let built

/** The path of the program. Rejects where its module cannot be had. */
export function porcupine() {
  built ??= build()
  return built
}

async function build() {
  mkdirSync(CACHE, { recursive: true })
  const program = `${CACHE}porcupine`
  await run('go', ['build', '-o', program, '.'], { cwd: FOLDER })
  return program
}

const text = (_, value) => (typeof value === 'bigint' ? value.toString() : value)

/** `held`, `broke` or `unknown` for each history: `{ id, kind, calls }`. */
export async function askPorcupine(histories) {
  const child = spawn(await porcupine(), { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify(histories, text))
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (part) => (said += part))
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(`Porcupine ended with ${code}`)
  return JSON.parse(said).map(({ seen }) => seen)
}

/** The record with one verdict more: whether Porcupine says the same about its calls. A difference is a finding. */
export async function withSecondOpinion(record) {
  const asked = record.verdicts.some(({ check }) => check === 'second opinion')
  if (record.evidence === undefined || asked) return record
  return { ...record, verdicts: [...record.verdicts, await secondOpinion(record)] }
}

async function secondOpinion({ evidence, verdicts }) {
  const verdict = { check: 'second opinion', expected: 'holds' }
  try {
    await porcupine()
  } catch (error) {
    return { ...verdict, seen: 'not run', why: `Porcupine could not be built: ${firstLine(error)}` }
  }
  const ours = verdicts.find(({ check }) => check === 'linearizability')?.seen ?? 'not run'
  const histories = callsOf(evidence).map(({ of, calls }) => ({ id: of.name, kind: of.kind, calls }))
  const theirs = worst(await askPorcupine(histories))
  const undecided = [ours, theirs].some((seen) => seen === 'unknown' || seen === 'not run')
  if (undecided) return { ...verdict, seen: 'not run', why: `Porcupine: ${theirs}, the lab: ${ours}` }
  if (ours === theirs) return { ...verdict, seen: 'held', why: `Porcupine: ${theirs}, as the lab` }
  return {
    ...verdict,
    seen: 'broke',
    why: `Porcupine says "${theirs}" of the order of calls, the lab "${ours}"`,
  }
}

function firstLine(error) {
  return String(error.stderr ?? error.message).split('\n')[0]
}

function worst(all) {
  return ['broke', 'unknown'].find((seen) => all.includes(seen)) ?? 'held'
}
