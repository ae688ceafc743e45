import { checkMs, MAX_MS } from '../core/arguments.ts'
import { InvalidArgumentError, LockLostError } from '../core/errors.ts'
import { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import type { LockOptions } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import { asCache } from './cache.ts'
import type { AnyCache } from './cache.ts'
import { CacheMark, ClaimMark } from './mark.ts'
import type { Mark, RunRecord } from './mark.ts'

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
  readonly every?: number
  /** This much must have passed since the last run began. More than instances' clocks differ, less than the period. */
  readonly atLeast?: number
  /** What becomes of a run that threw. `keep`: it was the run of this period. `retry`: the next tick runs again. */
  readonly afterFailure?: 'keep' | 'retry'
  /** A cache that all instances share, for the last run and its result. Default: a claim at the lock's store. */
  readonly memory?: AnyCache
  /** Of the lock that is held while the job runs. */
  readonly lock?: Pick<LockOptions, 'ttl'>
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env
}

export type TickOutcome<T> =
  | { readonly kind: 'ran'; readonly result: T; readonly token: bigint }
  /** Another tick of this period was first. `last`: its run, if there is a memory and it is done. */
  | { readonly kind: 'skipped'; readonly last?: RunRecord<T> }

export interface Once<T> {
  readonly name: string
  /** Runs the job unless another instance does, or did in this period. Rejects with what the job threw. */
  tick(): Promise<TickOutcome<T>>
}

/** Part of a period that has to pass: what a tick may come early, or the last run may have begun late, has to fit beside it. */
const HOLD = 0.9

/** A job that all instances start at the same time, and one runs. */
export function once<T>(holdfast: Holdfast, name: string, options: OnceOptions<T>): Once<T> {
  const { env = systemEnv, memory } = options
  const hold = holdOf(options)
  const lock = holdfast.mutex(name, options.lock)
  if (memory !== undefined) return new Job(lock, options, () => new CacheMark(asCache(memory, env), name, hold, env))
  const { maxTtl } = holdfast.store.capabilities
  if (hold > maxTtl) {
    const message = `The ${holdfast.store.kind} store keeps claims for ${maxTtl} ms at most, and the job is to be held for ${hold} ms: pass a memory.`
    throw new InvalidArgumentError(message, { argument: options.every === undefined ? 'atLeast' : 'every' })
  }
  return new Job(lock, options, () => new ClaimMark(holdfast.store, name, hold, env))
}

function holdOf({ every, atLeast, afterFailure = 'keep' }: OnceOptions<unknown>): number {
  if ((every === undefined) === (atLeast === undefined)) {
    throw new InvalidArgumentError('one of every and atLeast must be given', { argument: 'every' })
  }
  if (afterFailure !== 'keep' && afterFailure !== 'retry') {
    throw new InvalidArgumentError(`afterFailure must be 'keep' or 'retry'`, { argument: 'afterFailure' })
  }
  if (every !== undefined) checkMs('every', every, { min: 1, max: MAX_MS })
  if (atLeast !== undefined) checkMs('atLeast', atLeast, { min: 1, max: MAX_MS })
  return atLeast ?? Math.ceil((every ?? 0) * HOLD)
}

class Job<T> implements Once<T> {
  private readonly lock: Lock
  private readonly options: OnceOptions<T>
  private readonly newMark: () => Mark<T>

  constructor(lock: Lock, options: OnceOptions<T>, newMark: () => Mark<T>) {
    this.lock = lock
    this.options = options
    this.newMark = newMark
  }

  get name(): string {
    return this.lock.name
  }

  async tick(): Promise<TickOutcome<T>> {
    const mark = this.newMark()
    // The mark first: most ticks of a fleet end here, after one request.
    const before = await mark.set()
    if (before !== null) return { kind: 'skipped', ...before }
    const lease = await this.lock.tryAcquire().catch(async (error: unknown) => {
      await mark.leave('retry')
      throw error
    })
    // A run of the period before may still be at it.
    if (lease === null) {
      await mark.leave('retry')
      return { kind: 'skipped' }
    }
    try {
      // What is remembered without a claim may have changed before the lock was ours.
      const meanwhile = await mark.recheck()
      if (meanwhile !== null) return { kind: 'skipped', ...meanwhile }
      const { signal, token } = lease
      const result = await this.run(mark, { signal, token })
      await mark.done(result, lease)
      lease.assertHeld()
      return { kind: 'ran', result, token }
    } catch (error) {
      if (error instanceof LockLostError) throw error
      throw error
    } finally {
      await lease.release()
    }
  }

  private async run(mark: Mark<T>, context: JobContext): Promise<T> {
    try {
      return await this.options.run(context)
    } catch (error) {
      await mark.leave(this.options.afterFailure ?? 'keep')
      throw error
    }
  }
}
