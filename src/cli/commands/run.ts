import { isUtf8 } from 'node:buffer'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LockAbortedError, LockTimeoutError } from '../../core/errors.ts'
import type { Holdfast } from '../../locks/holdfast.ts'
import type { Lease } from '../../runtime/lease.ts'
import { leave } from '../connect.ts'
import { parseDuration, showDuration } from '../duration.ts'
import { EXIT, UsageError } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { acquire, LOCK_OPTIONS, lockWish } from '../lock-option.ts'
import type { LockWish } from '../lock-option.ts'
import { reach } from '../reach.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { scrubbed, storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { killMargin, supervise } from '../supervise.ts'
import type { OnLost } from '../supervise.ts'
import { note } from '../table.ts'

const ON_LOST = ['kill', 'signal', 'ignore'] as const

const options = {
  ...LOCK_OPTIONS,
  'on-lost': {
    value: 'WHAT',
    choices: ON_LOST,
    help: 'when the lock goes: kill (default), signal or ignore',
  },
  grace: { value: 'TIME', help: 'between SIGTERM and SIGKILL; default a third of --ttl, at most 10s' },
  'min-hold': { value: 'TIME', help: 'keep the lock at least this long, however quick the command is' },
  'not-acquired-code': {
    value: 'CODE',
    short: 'E',
    help: 'exit code when the lock is not had in time; default 75',
  },
  verbose: { short: 'v', help: 'tell on stderr what happens' },
  ...STORE_OPTIONS,
} as const

interface Plan {
  readonly wish: LockWish
  readonly program: string
  readonly args: readonly string[]
  readonly onLost: OnLost
  readonly grace: number
  readonly minHold: number
  readonly notAcquired: number
  readonly verbose: boolean
}

const run: Command = command({
  spec: {
    name: 'run',
    usage: 'NAME [options] -- COMMAND [ARGUMENT…]',
    summary: 'Runs a command while holding a lock',
    details:
      'The command runs without a shell, in a process group of its own, and is dead before the lock can pass to\n' +
      'somebody else. It finds HOLDFAST_NAME, HOLDFAST_TOKEN (the fencing token) and HOLDFAST_EXPIRES in its environment.\n' +
      "Exit code: the command's own or 128 + signal; 64 usage, 69 store unavailable, 75 not acquired, 79 lock lost.",
    options,
    words: [1, 1],
    takesCommand: true,
    examples: [
      'holdfast run nightly-backup -- ./backup.sh',
      'holdfast run deploy --wait 0 -- make deploy     # somebody else deploys: exit 75 at once',
      'holdfast run gpu --permits 1 --of 4 -- train    # four at a time, on all machines together',
      'holdfast run report --wait 0 --min-hold 50s -E 0 -- ./report.sh    # from cron on many machines: one of them',
    ],
  },

  async run({ options: given, words: [name = ''], command: [program, ...args] }) {
    if (program === undefined || program === '')
      throw new UsageError('Which command? holdfast run NAME -- COMMAND [ARGUMENT…]')
    refuseMangled([name, program, ...args])
    const plan: Plan = {
      wish: lockWish(name, given),
      program,
      args,
      onLost: onLost(given['on-lost'] ?? 'kill'),
      grace: grace(given.grace, lockWish(name, given).ttl),
      minHold: given['min-hold'] === undefined ? 0 : parseDuration('--min-hold', given['min-hold']),
      notAcquired: exitCode(given['not-acquired-code']),
      verbose: given.verbose === true,
    }
    const address = storeAddress(given)
    if (plan.verbose) tellEvents()
    const { holdfast, spent } = await reach(address, plan.wish, { say: note })
    try {
      return await runUnderLock(holdfast, plan, spent)
    } finally {
      await leave(holdfast)
    }
  },
})

export default run

async function runUnderLock(holdfast: Holdfast, plan: Plan, spent: number): Promise<number> {
  const { wish, onLost: what, program, args, minHold } = plan
  const interrupt = new Interrupt()
  try {
    const lease = await take(holdfast, plan, spent, interrupt)
    if (typeof lease === 'number') return lease
    const since = performance.now()
    const environment = environmentFor(lease)
    // The command's signals are its own from here on; the two sets of handlers change over in one step.
    const running = supervise(lease, {
      program,
      args,
      environment,
      onLost: what,
      grace: plan.grace,
      ttl: wish.ttl,
      say: note,
    })
    interrupt.stop()
    const code = await running
    const { interrupted, worked } = await holdOn(
      holdfast,
      lease,
      minHold - (performance.now() - since),
      plan.verbose,
    )
    return interrupted ?? (await release(lease, code, plan, worked))
  } finally {
    interrupt.stop()
  }
}

/** The lease, or the exit code when there is none. */
async function take(
  holdfast: Holdfast,
  plan: Plan,
  spent: number,
  interrupt: Interrupt,
): Promise<Lease | number> {
  const { wish, notAcquired, verbose } = plan
  try {
    const lease = await acquire(holdfast, wish, { signal: interrupt.signal, spent })
    await settled(lease, Math.min(plan.grace + killMargin(wish.ttl), wish.ttl / 2))
    return interrupt.exitCode ?? lease
  } catch (error) {
    if (error instanceof LockAbortedError && interrupt.exitCode !== undefined) return interrupt.exitCode
    if (!(error instanceof LockTimeoutError)) throw error
    if (verbose || notAcquired !== EXIT.ok) note(error.message)
    return notAcquired
  }
}

/** A lock that was waited for is first given for a short time; a renewal that is under way already makes it a full one. */
async function settled(lease: Lease, enough: number): Promise<void> {
  while (lease.held && lease.remaining() < enough) await sleep(5)
  lease.assertHeld()
}

interface HeldOn {
  readonly interrupted?: number | undefined
  /** The store has renewed the lease after the command's end: whatever came then, the work was done under the lock. */
  readonly worked: boolean
}

/** Keeps the lock for what is left of --min-hold. A signal ends that; then the lock is left to run out, not released. */
async function holdOn(holdfast: Holdfast, lease: Lease, ms: number, verbose: boolean): Promise<HeldOn> {
  let worked = false
  if (ms <= 0 || !lease.held) return { worked }
  const interrupt = new Interrupt()
  const renewed = (): void => void (worked = true)
  subscribe('holdfast:renewed', renewed)
  if (verbose) note(`the command has ended; "${lease.name}" is kept for another ${showDuration(ms)}`)
  try {
    const over = AbortSignal.any([interrupt.signal, lease.signal])
    await sleep(ms, undefined, { signal: over }).catch(() => {})
    if (interrupt.exitCode !== undefined) await holdfast.close({ release: false })
    return { interrupted: interrupt.exitCode, worked }
  } finally {
    unsubscribe('holdfast:renewed', renewed)
    interrupt.stop()
  }
}

/** The store may know that the lock was lost although nothing here could: then that is the truth. */
async function release(
  lease: Lease,
  code: number,
  { onLost: what, wish }: Plan,
  worked: boolean,
): Promise<number> {
  // To the end of this process: a signal that comes now says no more than that nobody wants to wait for the store.
  const interrupt = new Interrupt()
  // What is left of a lock that is going is removed when the store is closed, without anybody waiting long for it.
  if (code === EXIT.lockLost && what !== 'ignore') return code
  const outcome = await Promise.race([lease.release(), interrupt.arrival().then(() => 'unknown' as const)])
  if (outcome === 'unknown')
    note(`the store did not answer; "${wish.name}" ends by itself within ${showDuration(wish.ttl)}`)
  if (outcome !== 'expired' || what === 'ignore') return code
  if (worked) {
    note(`"${wish.name}" was lost after the command had ended, before --min-hold was over`)
    return code
  }
  note(`"${wish.name}" was lost while the command ran; others may have run at the same time`)
  return EXIT.lockLost
}

function environmentFor(lease: Lease): NodeJS.ProcessEnv {
  return {
    ...scrubbed(process.env),
    HOLDFAST_NAME: lease.name,
    HOLDFAST_TOKEN: String(lease.token),
    HOLDFAST_EXPIRES: String(Math.floor(Date.now() + lease.remaining())),
  }
}

/** Node makes one and the same character of all bytes that are not UTF-8: the command would work on another file. */
function refuseMangled(words: readonly string[]): void {
  const word = words.find((one) => one.includes('\u{fffd}'))
  if (word === undefined) return
  let bytes: Buffer
  try {
    bytes = readFileSync('/proc/self/cmdline')
  } catch {
    // Elsewhere than on Linux nobody says what it was.
    return
  }
  if (isUtf8(bytes)) return
  throw new UsageError(
    `The argument "${word}" is not UTF-8, and Node would pass another one on. Let the command read it from a file, as xargs does.`,
  )
}

function tellEvents(): void {
  const tell = (kind: string, text: (event: never) => string): void =>
    subscribe(`holdfast:${kind}`, (event) => note(text(event as never)))
  tell('waiting', ({ name }: { name: string }) => `waiting for "${name}"`)
  tell('acquired', ({ name, token, waited }: { name: string; token: bigint; waited: number }) => {
    return `acquired "${name}" after ${showDuration(waited)}, token ${token}`
  })
  tell('at-risk', ({ name, remaining }: { name: string; remaining: number }) => {
    return `"${name}" could not be renewed; it is good for another ${showDuration(remaining)}`
  })
  tell('released', ({ name, held }: { name: string; held: number }) => {
    return `released "${name}" after ${showDuration(held)}`
  })
}

function onLost(text: string): OnLost {
  const known = ON_LOST.find((one) => one === text)
  if (known === undefined) throw new UsageError(`--on-lost takes ${ON_LOST.join(', ')}; got "${text}"`)
  return known
}

function grace(text: string | undefined, ttl: number): number {
  if (text === undefined) return Math.min(Math.round(ttl / 3), 10_000)
  const ms = parseDuration('--grace', text)
  // A renewal is due after a third of the ttl: with a longer grace, one that is only late would end the command.
  if (ms > ttl / 2)
    throw new UsageError(`--grace may be at most half of --ttl (${showDuration(ttl / 2)}); got "${text}"`)
  return ms
}

function exitCode(text: string | undefined): number {
  if (text === undefined) return EXIT.notAcquired
  if (!/^\d{1,3}$/.test(text) || Number(text) > 255)
    throw new UsageError(`-E takes a code from 0 to 255; got "${text}"`)
  return Number(text)
}
