import type { Capabilities, Guarantee, Guarantees } from '../../core/contract.ts'
import { open } from '../../open.ts'
import { credentialsOf, leave } from '../connect.ts'
import { examine, givesLocks } from '../doctor/checks.ts'
import type { Finding } from '../doctor/checks.ts'
import { settingsOf } from '../doctor/settings.ts'
import { EXIT } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import type { Cell } from '../table.ts'
import { paint, print, printJson, table } from '../table.ts'

const options = {
  json: { help: 'print JSON; times in milliseconds' },
  ...STORE_OPTIONS,
} as const

const doctor: Command = command({
  spec: {
    name: 'doctor',
    usage: '[URL] [options]',
    summary: 'Checks a store and says what it can promise',
    details:
      'Connects twice, looks at the settings that matter, takes locks of its own that nobody else uses, and measures.\n' +
      'Exit code 1 when something is wrong.',
    options,
    words: [0, 1],
    examples: ['holdfast doctor', 'holdfast doctor redis://localhost', 'holdfast doctor --json'],
  },

  async run({ options: given, words: [url] }) {
    const where = storeAddress(given, url)
    const { url: address, shown } = where
    const began = performance.now()
    const first = await open(address, credentialsOf(where))
    const connected = performance.now() - began
    // A store inside this process has no second client.
    const alone = first.store.capabilities.reach === 'process'
    const second = alone ? first : await open(address, credentialsOf(where))
    try {
      const settings = await settingsOf(address)
      // Where the settings say why no lock can be had, there is nothing to measure, and no use in waiting for one.
      const sound = settings.every(({ status }) => status !== 'fail') || (await givesLocks(first))
      const { findings, ...measured } = sound ? await examine(first, second) : { findings: [] }
      const { kind, capabilities } = first.store
      const all = [
        {
          status: 'ok',
          what: 'connection',
          detail: `${kind} at ${shown}, in ${Math.round(connected)}ms`,
        } as const,
        ...settings,
        ...findings,
        ...promises(capabilities),
      ]
      if (given.json === true)
        printJson({ store: shown, kind, connected, ...measured, findings: all, capabilities })
      else show(all, capabilities)
      return all.some(({ status }) => status === 'fail') ? EXIT.failed : EXIT.ok
    } finally {
      await leave(first)
      if (second !== first) await leave(second)
    }
  },
})

export default doctor

/** What can go wrong, in words. */
const FAULTS: Readonly<Record<keyof Guarantees, string>> = {
  holderCrash: 'a holder crashes',
  holderPause: 'a holder stands still and goes on later',
  partition: 'a holder is cut off from the store',
  storeRestart: 'the store restarts',
  failover: 'the store fails over to a replica',
  storeClockJump: "the store's clock jumps",
}

const MEANING: Readonly<Record<Guarantee, Cell>> = {
  holds: { text: 'holds', colour: 'green' },
  fenced: { text: 'only where the resource checks tokens', colour: 'yellow' },
  breaks: { text: 'breaks: two may hold the lock at once', colour: 'red' },
  'n/a': { text: 'cannot happen here', colour: 'dim' },
}

function promises({ fencing, queue, wakeups, reach }: Capabilities): readonly Finding[] {
  const findings: Finding[] = []
  if (fencing === 'weak') {
    findings.push({
      status: 'warn',
      what: 'fencing',
      detail: 'tokens may go back if the store loses its memory',
    })
  }
  if (!queue)
    findings.push({
      status: 'warn',
      what: 'fairness',
      detail: 'no queue: whoever asks at the right moment is next',
    })
  if (wakeups === 'poll')
    findings.push({ status: 'warn', what: 'wake-ups', detail: 'none: waiters ask again and again' })
  if (reach !== 'network') {
    findings.push({
      status: 'warn',
      what: 'reach',
      detail: `locks hold within one ${reach}, not between machines`,
    })
  }
  return findings
}

function show(findings: readonly Finding[], { guarantees, ...can }: Capabilities): void {
  const mark = {
    ok: { text: 'ok', colour: 'green' },
    warn: { text: 'note', colour: 'yellow' },
    fail: { text: 'FAIL', colour: 'red' },
  } as const
  print(
    table(
      ['', 'CHECK', ''],
      findings.map(({ status, what, detail }) => [mark[status], what, detail]),
    ),
  )
  const faults = Object.entries(FAULTS) as readonly [keyof Guarantees, string][]
  print(`\n${paint('bold', 'One holder at a time, when …')}`)
  print(
    table(
      ['', ''],
      faults.map(([fault, words]) => [`… ${words}`, MEANING[guarantees[fault]]]),
    ),
  )
  const yes = (value: boolean): string => (value ? 'yes' : 'no')
  print(
    `\nShared locks: ${yes(can.shared)}. Semaphores: ${yes(can.permits)}. First come, first served: ${yes(can.queue)}.`,
  )
}
