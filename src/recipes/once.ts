import { checkName, checkOptions, checkPeriod } from '../core/arguments.ts'
import type { Store } from '../core/contract.ts'
import { InvalidArgumentError, LockLostError } from '../core/errors.ts'
import { printable, shown } from '../core/printing.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import { checkEnv } from '../locks/options.ts'
import type { LockOptions } from '../locks/options.ts'
import { runAndRelease } from '../locks/run.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import type { Lease } from '../runtime/lease.ts'
import { asCache } from './cache.ts'
import type { AnyCache } from './cache.ts'
import { checkHoldfast } from './check-holdfast.ts'
import { cacheMemory, claimMemory, markOf } from './run-memory.ts'
import type { Mark, RunMemory, RunRecord } from './run-memory.ts'

export interface JobContext {
  /** Aborts when another instance may run the job. */
  readonly signal: AbortSignal
  /** The fencing token of the run. */
  readonly token: bigint
}

/** All times are milliseconds. Give one of `every` and `atLeast`. */
export interface OnceOptions<T> {
  readonly run: (context: JobContext) => T | PromiseLike<T>
  /** The period in which all instances call `tick`: nine tenths of it must have passed since the last run began. */
  readonly every?: number | undefined
  /** This much must have passed since the last run began: more than the instances' clocks differ, less than the period. */
  readonly atLeast?: number | undefined
  /** What a run that threw was. `keep`: the run of this period, the default. `retry`: none, the next tick runs again. */
  readonly afterFailure?: 'keep' | 'retry' | undefined
  /** A cache that all instances share, for the last run and its result. Default: a claim at the lock's store. */
  readonly memory?: AnyCache | undefined
  /** Of the lock that is held while the job runs. */
  readonly lock?: Pick<LockOptions, 'ttl'> | undefined
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env | undefined
}

export type TickOutcome<T> =
  | { readonly kind: 'ran'; readonly result: T; readonly token: bigint }
  /** Another instance runs it. */
  | { readonly kind: 'running' }
  /** There was a run less than the hold ago. `last`: what is known of it here. */
  | { readonly kind: 'skipped'; readonly last: RunRecord<T> | null }

export interface Once<T> {
  readonly name: string
  /**
   * Runs the job unless another instance does, or did in this period. Rejects with what the job threw; with a LockLostError
   * if it ran, and another instance may run it too, because the lock was lost meanwhile or the `memory` took no note of it; with a StoreUnavailableError, and has not
   * run it, when the store does not say within some seconds whether it was run. A LockLostError without an `outcome` says that the lock was lost
   * before the job was begun.
   */
  tick(): Promise<TickOutcome<T>>
  /** The last run: of all instances with a `memory`, else of this one. Null if it is forgotten. */
  last(): Promise<RunRecord<T> | null>
}

/** Part of a period that must have passed. A tick may come early, and the last run may have begun late: that is the rest. */
const HOLD = 0.9

/** A lock server that was killed has nobody wait for longer than that because a job was run. */
const LONGEST_OUTAGE_MS = 60_000

const OPTIONS: readonly (keyof OnceOptions<unknown>)[] = [
  'run',
  'every',
  'atLeast',
  'afterFailure',
  'memory',
  'lock',
  'env',
]

/** A job that all instances start at the same time, and one of them runs. */
export function once<T>(holdfast: Holdfast, name: string, options: OnceOptions<T>): Once<T> {
  // Who writes no types may have left them out.
  if (typeof (options as OnceOptions<T> | undefined)?.run !== 'function') {
    const message = 'run must be a function: once(holdfast, name, { every, run: ({ signal, token }) => … })'
    throw new InvalidArgumentError(message, { argument: 'run' })
  }
  checkOptions(options, OPTIONS, 'every')
  checkHoldfast(holdfast)
  checkName(name)
  const { env = systemEnv, memory } = options
  checkEnv(env)
  const hold = holdOf(options)
  const { store } = holdfast
  const kept = { name, hold, env }
  if (memory !== undefined) return new Job(holdfast, name, options, cacheMemory(asCache(memory, env), kept))
  const check = (): void => checkHold(store, options, hold)
  check()
  checkName(markOf(name))
  return new Job(holdfast, name, options, claimMemory(store, { ...kept, check }))
}

/** Whether the store can remember a run for that long, as far as it is known: a lock server says so when it is first asked. */
function checkHold<T>({ kind, capabilities }: Store, options: OnceOptions<T>, hold: number): void {
  const { minTtl, maxTtl, earlyExpiry, lateExpiry = 0, waitsAfterCrash = false } = capabilities
  const argument = options.every === undefined ? 'atLeast' : 'every'
  if (hold < minTtl || hold + earlyExpiry > maxTtl) {
    const message = `The ${kind} store keeps claims for ${minTtl} to ${maxTtl - earlyExpiry} ms, and a run is to be remembered for ${hold} ms. Pass a memory.`
    throw new InvalidArgumentError(message, { argument })
  }
  if (waitsAfterCrash && hold > LONGEST_OUTAGE_MS) {
    const message = `After a crash the ${kind} store grants no lock to anybody for as long as a run may be remembered, ${hold} ms. Pass a memory, or give the lock server a store.`
    throw new InvalidArgumentError(message, { argument })
  }
  // A run that ends with its hold is remembered for as long as the store keeps a claim at least.
  const longest = hold + Math.max(earlyExpiry, minTtl) + lateExpiry
  if (lateExpiry > 0 && options.every !== undefined && longest > options.every) {
    const message = `The ${kind} store keeps claims for up to ${lateExpiry} ms longer than it is asked to, and would swallow every other period of ${options.every} ms. Pass a memory.`
    throw new InvalidArgumentError(message, { argument })
  }
}

function holdOf({ every, atLeast, afterFailure = 'keep' }: Omit<OnceOptions<unknown>, 'run'>): number {
  if ((every === undefined) === (atLeast === undefined)) {
    throw new InvalidArgumentError('one of every and atLeast must be given', { argument: 'every' })
  }
  if (afterFailure !== 'keep' && afterFailure !== 'retry') {
    throw new InvalidArgumentError(`afterFailure must be 'keep' or 'retry'`, { argument: 'afterFailure' })
  }
  if (atLeast !== undefined) {
    checkPeriod('atLeast', atLeast)
    return atLeast
  }
  checkPeriod('every', every)
  return Math.ceil(every * HOLD)
}

class Job<T> implements Once<T> {
  readonly name: string
  private readonly store: string
  private readonly lock: Lock
  private readonly options: OnceOptions<T>
  private readonly memory: RunMemory<T>
  private readonly env: Env

  constructor(holdfast: Holdfast, name: string, options: OnceOptions<T>, memory: RunMemory<T>) {
    this.name = name
    this.store = holdfast.store.kind
    this.lock = holdfast.mutex(name, options.lock)
    this.options = options
    this.memory = memory
    this.env = options.env ?? systemEnv
  }

  async tick(): Promise<TickOutcome<T>> {
    const lease = await this.lock.tryAcquire()
    if (lease === null) return { kind: 'running' }
    const mark = await this.begin(lease)
    if (mark === null) return { kind: 'skipped', last: await this.memory.last() }
    const result = (await runAndRelease(lease, this.store, () => this.run(lease, mark))) as T
    return shown({ kind: 'ran', result, token: lease.token })
  }

  last(): Promise<RunRecord<T> | null> {
    return this.memory.last()
  }

  /** Null: there was a run. Where the job is not begun, whatever the reason, the lock is given back. */
  private async begin(lease: Lease): Promise<Mark<T> | null> {
    let begun = false
    try {
      const mark = await this.memory.begin(() => lease.remaining())
      // By the clocks: an answer that comes after a long stop is heard before any timer is.
      begun = mark !== null && lease.held && !lease.signal.aborted
      if (begun || mark === null) return mark
      // Closed or lost meanwhile: the job is not begun, and the period is left to the others.
      await mark.drop()
      throw lease.signal.reason
    } finally {
      if (!begun) await lease.release()
    }
  }

  private async run({ signal, token }: Lease, mark: Mark<T>): Promise<T> {
    const began = this.env.wall()
    const record = (outcome: RunRecord<T>['outcome']): RunRecord<T> => ({
      began,
      ended: this.env.wall(),
      token: String(token),
      outcome,
    })
    let value: T
    try {
      value = await this.options.run(shown({ signal, token }))
    } catch (error) {
      const noted =
        this.options.afterFailure === 'retry' ? mark.drop() : mark.keep(record({ kind: 'failed' }))
      // What the job threw tells more than that this could not be noted.
      await noted.catch(() => {})
      throw error
    }
    try {
      await mark.keep(record({ kind: 'result', value }))
    } catch (cause) {
      const message = `"${this.name}" was run, and its memory did not take note of that: another instance may run it again. See error.outcome for what it returned.`
      const outcome = { status: 'fulfilled', value } as const
      throw new LockLostError(message, { lock: this.name, store: this.store, token, outcome, cause })
    }
    return value
  }
}

// Not what it was given: a client may have a password.
printable(Job, 'Once', ({ name }) => ({ name }))
