import { randomBytes, randomInt } from 'node:crypto'
import { appendFileSync, writeFileSync } from 'node:fs'
import type { Nemesis, Stage } from '../../lab/live/index.ts'
import { runCell, settingsOf } from '../../lab/live/index.ts'
import type { RunRecord } from '../../lab/record.ts'
import { report } from '../../lab/report/html.ts'
import { COLOURS } from '../../lab/report/summary.ts'
import { exitCode, pileOf, tally } from '../../lab/report/tally.ts'
import { storeAt } from '../connect.ts'
import { parseDuration, showDuration } from '../duration.ts'
import { EXIT, UsageError } from '../exit.ts'
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
  yes: { short: 'y', help: 'do not ask, also where the store is not on this machine' },
  ...STORE_OPTIONS,
} as const

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
      "holdfast lab redis://localhost --hurt-server 'docker pause redis' --heal-server 'docker unpause redis'",
    ],
  },

  async run({ options: given, words: [url] }) {
    const clients = whole('--clients', given.clients ?? '8', 2, 100)
    const forMs = parseDuration('--for', given.for ?? '60s')
    const seed = given.seed === undefined ? randomInt(1, 2 ** 31) : whole('--seed', given.seed, 0, 2 ** 31)
    const nemeses = [...parseFaults(given.faults ?? 'pause,kill,cut'), ...serverFaults(given)]
    const address = storeAddress(given, url)
    const what = `${clients} clients will contend for locks there for ${showDuration(forMs)}.`
    await consent(address, what, { yes: given.yes === true })
    // Better to know before the run than after it.
    for (const file of [given.html, given.json]) if (file !== undefined) appendFileSync(file, '')
    const stage = await stageOn(address, clients)
    // Before anything is said: whoever reads it may interrupt at once.
    const interrupt = new Interrupt()
    print(`${clients} clients on ${address.shown} for ${showDuration(forMs)}, seed ${seed}`)
    const records = await play(stage, nemeses, { seed, forMs, signal: interrupt.signal })
    interrupt.stop()
    print(verdicts(records))
    if (given.html !== undefined)
      writeFileSync(given.html, report(records, { about: `${address.shown}, seed ${seed};` }))
    if (given.json !== undefined) writeFileSync(given.json, `${JSON.stringify(records)}\n`)
    return interrupt.exitCode ?? (exitCode(tally(records)) === 0 ? EXIT.ok : EXIT.failed)
  },
})

export default lab

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
  const store = await storeAt(address)
  const { kind, capabilities } = store
  await store.close()
  if (capabilities.reach === 'process')
    throw new UsageError(
      `${address.shown} lives inside one process: several could not contend for its locks.`,
    )
  const prefix = `holdfast-lab-${randomBytes(4).toString('hex')}`
  // A lock that more than a few want is mostly waited for.
  const [first = '', ...others] = Array.from(
    { length: Math.ceil(clients / 4) },
    (_, index) => `${prefix}:${index + 1}`,
  )
  const { url, token } = address
  return {
    store: kind,
    url,
    ...(token === undefined ? {} : { token }),
    clients,
    names: [first, ...others],
    ...settingsOf(kind, capabilities),
  }
}

interface Run {
  readonly seed: number
  readonly forMs: number
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

function verdicts(records: readonly RunRecord[]): string {
  const [run] = records
  if (run === undefined) return ''
  const rows = run.verdicts.map((verdict) => [
    verdict.check,
    verdict.expected,
    { text: verdict.seen, colour: COLOURS[pileOf(verdict)] },
    verdict.why ?? '',
  ])
  const grants = run.timeline.filter(({ kind }) => kind === 'acquired').length
  const bad = tally(records).unexpected.length + tally(records).unknown.length
  const end =
    bad === 0 ? 'Everything is as the store promises.' : `${bad} of it is not as the store promises.`
  return `${grants} grants, ${run.faults.length} faults\n\n${table(['check', 'promised', 'seen', ''], rows)}\n\n${end}`
}

function whole(option: string, text: string, least: number, most: number): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isInteger(number) || number < least || number > most) {
    throw new UsageError(`${option} takes a whole number from ${least} to ${most}; got "${text}"`)
  }
  return number
}
