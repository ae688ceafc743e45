import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { systemError } from '../connect.ts'
import { CommandError, EXIT, UsageError } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { socketOf } from '../keeper/folder.ts'
import { identify, lives, scriptOf } from '../keeper/script-process.ts'
import { COMMIT } from '../keeper/wire.ts'
import type { Order, Report, Unreached } from '../keeper/wire.ts'
import { LOCK_OPTIONS, lockWish } from '../lock-option.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { scrubbed, storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { note, print, printJson, written } from '../table.ts'

const PRINTABLE = ['json', 'lease', 'token', 'expires'] as const

const options = {
  ...LOCK_OPTIONS,
  print: {
    value: 'WHAT',
    help: 'json (default), or one thing alone: lease, token, expires',
    choices: PRINTABLE,
  },
  parent: { value: 'PID', help: 'keep it as long as this process lives; default the script that calls' },
  ...STORE_OPTIONS,
} as const

const acquire: Command = command({
  spec: {
    name: 'acquire',
    usage: 'NAME [options]',
    summary: 'Takes a lock for a script and keeps it',
    details:
      'Prints JSON: name, token (the fencing token), lease (for "holdfast release") and expires. In a script use --print\n' +
      'lease: behind a pipe the status would be that of the last program, and the script go on without the lock. A process in the\n' +
      'background renews it until it is released or the calling script ends. Prefer "holdfast run" where you can: it ends\n' +
      'the work when the lock is lost, which a script has to see to by itself.',
    options,
    words: [1, 1],
    examples: [
      'lease=$(holdfast acquire deploy --wait 5m --parent $$ --print lease) || exit; make deploy || exit; holdfast release "$lease"',
      'holdfast acquire deploy --parent $$ && make deploy && holdfast release deploy',
    ],
  },

  async run({ options: given, words: [name = ''] }) {
    const { wait, ...wish } = lockWish(name, given)
    const wanted = printable(given.print ?? 'json')
    const address = storeAddress(given)
    const lease = randomBytes(8).toString('hex')
    // Before anything is asked for: where it cannot listen there is no lock.
    socketOf(lease)
    const script = identify(given.parent === undefined ? callingScript() : pidOf(given.parent))
    const answer = ({ token, expires }: Held): Promise<void> => {
      // Not even a reader that went away is a success here: nobody knows of the lease.
      process.stdout.prependOnceListener('error', ({ code }: NodeJS.ErrnoException) => {
        note(`The lease cannot be told (${code}), so it is given back.`)
        process.exit(EXIT.system)
      })
      if (wanted === 'json') printJson({ name, token, lease, expires, store: address.shown })
      else print(String({ lease, token, expires }[wanted]))
      return written(process.stdout)
    }
    const order = { address, wish: { ...wish, wait: wait === Infinity ? null : wait }, script, lease }
    return askKeeper(order, answer)
  },
})

export default acquire

function printable(what: string): (typeof PRINTABLE)[number] {
  const known = PRINTABLE.find((one) => one === what)
  if (known === undefined) throw new UsageError(`--print takes ${PRINTABLE.join(', ')}; got "${what}"`)
  return known
}

function callingScript(): number {
  const pid = scriptOf(process.ppid)
  if (pid > 0) return pid
  throw new UsageError(
    'What called is outside of this container, and cannot be seen to end: call it from a script inside, or say --parent PID.',
  )
}

function pidOf(text: string): number {
  const pid = Number(text)
  if (!/^[1-9]\d*$/.test(text) || !lives(identify(pid))) {
    throw new UsageError(`--parent takes the number of a running process; got "${text}"`)
  }
  return pid
}

type Held = Extract<Report, { kind: 'held' }>

/** How long an interrupted wait may take to leave the queue. A keeper whose store does not answer does the rest alone. */
const LEAVE_MS = 500

/** Starts the keeper and passes its answer on. The exit code: perhaps that for the signal that ended the wait. */
async function askKeeper(order: Order, answer: (held: Held) => Promise<void>): Promise<number> {
  // From dist/cli/commands and from dist/commonjs/shared alike. Where there is no `import.meta`, there is a `__filename`.
  const here = (import.meta.url as string | undefined) ?? pathToFileURL(__filename)
  const program = fileURLToPath(new URL('../../commonjs/keeper.cjs', here))
  const keeper = spawn(process.execPath, [program], {
    detached: true,
    // Its stderr is not ours: a pipe that reads it would wait for the keeper's end.
    stdio: ['pipe', 'pipe', 'ignore'],
    env: scrubbed(process.env),
  })
  const failed = once(keeper, 'error').then(([error]) =>
    Promise.reject(systemError('The keeper cannot be started', error)),
  )
  failed.catch(() => {})
  const { stdin, stdout } = keeper as { stdin: Writable; stdout: Readable }
  stdin.on('error', () => {})
  const interrupt = new Interrupt()
  try {
    // The URL and its password travel here: neither arguments nor environment.
    stdin.write(`${JSON.stringify(order)}\n`)
    const report = await Promise.race([reportOn(stdout), interrupt.arrival(), failed])
    if (interrupt.exitCode !== undefined) {
      // The keeper sees that nobody is here any more, and leaves the queue; then it is gone.
      stdin.end()
      await Promise.race([once(keeper, 'exit'), sleep(LEAVE_MS)])
      return interrupt.exitCode
    }
    if (report === undefined) throw noWord()
    if (report.kind === 'failed') throw new CommandError(report.message, report.exitCode)
    // An answer that cannot be written (a full disk) ends this process before the last word: then the lock was not taken.
    await answer(report)
    stdin.write(`${COMMIT}\n`)
    return EXIT.ok
  } finally {
    interrupt.stop()
    stdin.end()
    keeper.unref()
  }
}

async function reportOn(stream: Readable): Promise<Report> {
  for await (const line of createInterface({ input: stream })) {
    const said = JSON.parse(line) as Report | Unreached
    if (said.kind !== 'unreached') return said
    note(said.message)
  }
  throw noWord()
}

const noWord = (): CommandError => new CommandError('The keeper ended without a word.', EXIT.software)
