import { randomBytes, randomInt } from 'node:crypto'
import { appendFileSync, closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import type { Nemesis, Stage } from '../../lab/live/index.ts'
import { isEvidence, jsonPieces, judgeAgain, runCell, settingsOf } from '../../lab/live/index.ts'
import type { RunRecord } from '../../lab/record.ts'
import { report } from '../../lab/report/html.ts'
import { counted } from '../../lab/report/escape.ts'
import { COLOURS } from '../../lab/report/summary.ts'
import type { Finding, Pile } from '../../lab/report/tally.ts'
import { exitCode, pileOf, tally } from '../../lab/report/tally.ts'
import { credentialsOf, withStore } from '../connect.ts'
import { parseDuration, showDuration } from '../duration.ts'
import { UsageError } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { consent } from '../lab/consent.ts'
import { FAULTS, parseFaults } from '../lab/faults.ts'
import { serverFault } from '../lab/server-fault.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import type { StoreAddress } from '../store-option.ts'
import { coloured, note, print, table } from '../table.ts'

const options = {
  clients: { value: 'N', help: 'how many processes want the lock; default 8' },
  for: { value: 'TIME', help: 'for how long faults come; default 60s' },
  faults: { value: 'LIST', help: `which, with commas between: ${FAULTS.join(', ')}; default pause,kill,cut` },
  'hurt-server': {
    value: 'COMMAND',
    help: 'hurt the server too, by this command for the shell; only you know how',
  },
  'heal-server': { value: 'COMMAND', help: 'and bring it back by this one, half a ttl later' },
  seed: { value: 'N', help: 'which order of faults; default: a new one, which is printed' },
  html: { value: 'FILE', help: 'write a report to look at' },
  json: { value: 'FILE', help: 'write everything that was seen, for programs' },
  judge: { value: 'FILE', help: 'no run: judge again what --json of an earlier one wrote' },
  yes: { short: 'y', help: 'do not ask, also where the store is not on this machine' },
  ...STORE_OPTIONS,
} as const

/** What makes a run the same one. */
const REPEATED = [
  'clients',
  'for',
  'faults',
  'seed',
  'hurt-server',
  'heal-server',
  'token-file',
  'ca-file',
] as const

/** Without a run there is nothing that these could say. */
const { judge: _judge, html: _html, ...OF_RUNS } = options

const lab: Command = command({
  spec: {
    name: 'lab',
    usage: '[URL] [options]',
    summary: 'Hurts lock clients on a store and shows what holds',
    details:
      'Starts processes that take a lock in turn, kills\n' +
      'and stops them and cuts their connections, checks what they wrote down, and compares that with what the store\n' +
      'promises. The server itself is not touched unless you say how (--hurt-server); names begin with "holdfast-lab-" and are cleaned up. Exit code 1 when\n' +
      'something is not as promised.',
    options,
    words: [0, 1],
    examples: [
      'holdfast lab redis://localhost --for 30s --html lab.html',
      'holdfast lab holdfast://127.0.0.1:7420 --clients 4 --faults pause,partition --seed 7',
      'holdfast lab --judge lab.json --html lab.html',
      "holdfast lab redis://localhost --hurt-server 'docker pause redis' --heal-server 'docker unpause redis'",
    ],
  },

  async run({ options: given, words: [url] }) {
    if (given.judge !== undefined) {
      const { judge, html, ...rest } = given
      const [useless] = Object.keys(rest).filter(
        (key) => key in OF_RUNS && rest[key as keyof typeof rest] !== undefined,
      )
      if (useless !== undefined)
        throw new UsageError(`--judge makes no run: --${useless} has nothing to do with it.`)
      return judged(judge, html, url)
    }
    const { clients: many = '8', for: time = '60s', faults = 'pause,kill,cut' } = given
    const clients = whole('--clients', many, 2, 100)
    const forMs = parseDuration('--for', time)
    const seed = given.seed === undefined ? randomInt(1, 2 ** 31) : whole('--seed', given.seed, 0, 2 ** 31)
    const nemeses = [...parseFaults(faults), ...serverFaults(given)]
    const address = storeAddress(given, url)
    const what = `${clients} clients will contend for locks there for ${showDuration(forMs)}.`
    await consent(address, what, { yes: given.yes === true })
    // Better to know before the run than after it.
    for (const file of [given.html, given.json]) if (file !== undefined) appendFileSync(file, '')
    const stage = await stageOn(address, clients)
    // Before anything is said: whoever reads it may interrupt at once.
    const interrupt = new Interrupt()
    print(`${clients} clients on ${address.shown} for ${showDuration(forMs)}, seed ${seed}`)
    const command = again(address, { ...given, clients: many, for: time, faults, seed: String(seed) })
    const records = await play(stage, nemeses, { seed, forMs, command, signal: interrupt.signal })
    interrupt.stop()
    print(`${allVerdicts(records)}\n\n${inTheEnd(records)}`)
    // First what the other can be made of again, should the disk be full.
    if (given.json !== undefined) writeJson(given.json, records)
    if (given.html !== undefined)
      writeFileSync(given.html, report(records, { about: `${address.shown}, seed ${seed};` }))
    return exitCode(tally(records), interrupt.exitCode)
  },
})

export default lab

/** How to make the same run again, for a shell. What holds a secret is not among it: the environment or a file has that. */
function again(
  { shown }: StoreAddress,
  given: Readonly<Record<string, string | boolean | undefined>>,
): string {
  const words = REPEATED.flatMap((option) => {
    const value = given[option]
    return typeof value === 'string' ? [`--${option}`, value] : []
  })
  return ['holdfast', 'lab', shown, ...words].map(quoted).join(' ')
}

function quoted(word: string): string {
  return /^[\w:/@.,=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

function serverFaults(given: {
  readonly 'hurt-server'?: string | undefined
  readonly 'heal-server'?: string | undefined
}): readonly Nemesis[] {
  const { 'hurt-server': hurt, 'heal-server': heal } = given
  if (hurt !== undefined) return [serverFault(hurt, heal)]
  if (heal !== undefined) throw new UsageError('--heal-server belongs to --hurt-server.')
  return []
}

async function stageOn(address: StoreAddress, clients: number): Promise<Stage> {
  const prefix = `holdfast-lab-${randomBytes(4).toString('hex')}`
  const about = await withStore(address, async (holdfast) => {
    const { kind, capabilities } = holdfast.store
    const settings = settingsOf(kind, capabilities)
    // A store that can give no lock yet, or not to these credentials, says so here, and is not accused of all that it does not give.
    await (await holdfast.mutex(`${prefix}:0`, { ttl: settings.ttl }).tryAcquire())?.release()
    return { store: kind, ...settings }
  })
  // A lock that more than a few want is mostly waited for.
  const [first = '', ...others] = Array.from(
    { length: Math.ceil(clients / 4) },
    (_, index) => `${prefix}:${index + 1}`,
  )
  const { url } = address
  return {
    ...about,
    url,
    credentials: credentialsOf(address),
    clients,
    names: [first, ...others],
  }
}

interface Run {
  readonly seed: number
  readonly forMs: number
  readonly command: string
  readonly signal: AbortSignal
}

/** The faults that can be made here, in one run; the others are said to be missing. */
async function play(stage: Stage, nemeses: readonly Nemesis[], run: Run): Promise<RunRecord[]> {
  const possible = nemeses.filter((one) => one.missing(stage) === undefined)
  const missing = nemeses.filter((one) => !possible.includes(one))
  if (possible.length === 0) {
    throw new UsageError(
      `None of these faults can be made there: ${missing.map(({ kind }) => kind).join(', ')}`,
    )
  }
  const live = coloured(process.stderr)
  const began = performance.now()
  const onFault = (kind: string): void => {
    const line = `${showDuration(performance.now() - began)} of ${showDuration(run.forMs)}: ${kind}`
    if (live) process.stderr.write(`\r\u001b[K${line}`)
  }
  const records = [await runCell(stage, possible, { ...run, onFault })]
  if (live) process.stderr.write('\r\u001b[K')
  for (const one of missing) {
    const record = await runCell(stage, [one], run)
    note(`not run: ${one.kind}, ${record.verdicts[0]?.why ?? ''}`)
    records.push(record)
  }
  return records
}

/** How a verdict is said, at a glance. */
const SEEN: Readonly<Record<Pile, string>> = {
  held: 'held',
  broke: 'broke, as expected',
  lucky: 'held, though not promised',
  unexpected: 'BROKE',
  unknown: 'undecided',
  notRun: 'not run',
}

function allVerdicts(records: readonly RunRecord[]): string {
  return records
    .map(verdicts)
    .filter((text) => text !== '')
    .join('\n\n')
}

function verdicts(run: RunRecord): string {
  if (run.counts === undefined) return ''
  const rows = run.verdicts.map((verdict) => {
    const pile = pileOf(verdict)
    const missed = pile === 'unexpected' && verdict.seen === 'held'
    const text = missed ? 'held, and had to break' : SEEN[pile]
    return [verdict.check, verdict.expected, { text, colour: COLOURS[pile] }, verdict.why ?? '']
  })
  const { grants, respawns } = run.counts
  const head = `${counted(grants, 'grant')}, ${counted(run.faults.length, 'fault')}, ${counted(run.clients.length, 'client')} (${respawns} in the place of one that was killed)`
  return `${head}\n\n${table(['check', 'promised', 'seen', ''], rows)}`
}

function inTheEnd(records: readonly RunRecord[]): string {
  const { unexpected, unknown, notRun } = tally(records)
  const undecided = unknown.length === 0 ? [] : [`${unknown.length} of it could not be decided.`]
  const bad = unexpected.length === 0 ? [] : [`${unexpected.length} of it is not as the store promises.`]
  if (bad.length + undecided.length > 0) return [...bad, ...undecided].join(' ')
  // Of faults that were not made, which and why. What cannot be made at all has a record of its own, and a check that others ran.
  const what = ({ run, verdict: { check, why = check } }: Finding): string =>
    run.counts === undefined ? `${run.fault}: ${why}` : check === 'faults' ? why : check
  const rest = notRun.length === 0 ? '' : ` Not run: ${notRun.map(what).join('; ')}.`
  return `Everything that was run is as the store promises.${rest}`
}

function writeJson(file: string, records: readonly RunRecord[]): void {
  const out = openSync(file, 'w')
  for (const piece of jsonPieces(records)) writeSync(out, piece)
  closeSync(out)
}

/** The rules of today on the evidence of an earlier run. */
function judged(file: string, html: string | undefined, url: string | undefined): number {
  if (url !== undefined) throw new UsageError('--judge makes no run, and needs no store.')
  const written = recordsIn(file)
  const { text, page, code } = fromFile(file, () => {
    const records = written.map(judgeAgain)
    return {
      text: `${allVerdicts(records)}\n\n${inTheEnd(records)}`,
      page: html === undefined ? '' : report(records, { about: `${file}, judged again;` }),
      code: exitCode(tally(records)),
    }
  })
  print(text)
  if (html !== undefined) writeFileSync(html, page)
  return code
}

/** What is in a file may be anything, however deep. */
function fromFile<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UsageError(
      `--judge cannot read the evidence in ${file}: it was changed, or is broken (${error instanceof Error ? error.message : String(error)})`,
    )
  }
}

function recordsIn(file: string): readonly RunRecord[] {
  const records = readRecords(file)
  const evidence = records.flatMap((one) => (one as RunRecord | null)?.evidence ?? [])
  if (evidence.length === 0)
    throw new UsageError(
      `--judge takes a file that "holdfast lab --json" wrote; ${file} has no evidence in it`,
    )
  if (!evidence.every(isEvidence))
    throw new UsageError(
      `--judge does not know the evidence in ${file}: another version wrote it, or a part is missing`,
    )
  return records
}

function readRecords(file: string): readonly RunRecord[] {
  try {
    const records: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return Array.isArray(records) ? (records as readonly RunRecord[]) : []
  } catch (error) {
    throw new UsageError(
      `--judge cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

function whole(option: string, text: string, least: number, most: number): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isInteger(number) || number < least || number > most) {
    throw new UsageError(`${option} takes a whole number from ${least} to ${most}; got "${text}"`)
  }
  return number
}
