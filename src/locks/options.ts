import { checkMs, checkWait, checkWhole, MAX_MS } from '../core/arguments.ts'
import type { Capabilities } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import type { ClockOptions } from '../runtime/clock.ts'
import type { Env } from '../runtime/env.ts'

/** All times are milliseconds. */
export interface LockOptions {
  /** How long the store keeps the lock if this process dies. Renewed at a third of it. Default 15,000. */
  readonly ttl?: number
  /** How long `acquire` and `run` wait for the lock. 0: not at all. Infinity: for ever. Default 30,000. */
  readonly wait?: number
  /**
   * `turns`: a process hands the lock from task to task while its turn lasts, then to the next process.
   * `strict`: as soon as another process is known to wait, every release goes to the next in the store's queue.
   */
  readonly fair?: 'turns' | 'strict'
  /** `false`: the lease is not renewed and ends after its ttl. Default true. */
  readonly renew?: boolean
  /** The longest that a lease may be held, renewed or not. Default Infinity. */
  readonly maxHold?: number
}

export interface HoldfastOptions extends LockOptions {
  /** What a process may do in one turn while others wait. Default 256 sections or 4 ms. */
  readonly turn?: { readonly count?: number; readonly ms?: number }
  /** How long the store keeps a waiter that says nothing. Default 5,000. */
  readonly patience?: number
  /** How long one request to the store may take. Default 5,000. */
  readonly requestTimeout?: number
  /** Who holds the locks, in words for people; shown by `inspect`. Default: host name and process id. */
  readonly owner?: string
  /** `close()` closes the store too. Default false; `open()` makes it true. */
  readonly closeStore?: boolean
  readonly clock?: ClockOptions
  /** Clocks, timers and randomness; for tests and simulations. */
  readonly env?: Env
}

export interface AcquireOptions {
  readonly wait?: number
  readonly ttl?: number
  readonly maxHold?: number
  /** Ends the wait. Has no effect on a lease that was given out. */
  readonly signal?: AbortSignal
}

export interface PermitOptions extends AcquireOptions {
  /** How many permits to take at once. Default 1. */
  readonly permits?: number
}

export type ResolvedLockOptions = Required<LockOptions>

export const DEFAULTS: ResolvedLockOptions = {
  ttl: 15_000,
  wait: 30_000,
  fair: 'turns',
  renew: true,
  maxHold: Infinity,
}

/** The options of a lock: what is given, over what the Holdfast says, checked. */
export function resolve(
  given: LockOptions,
  defaults: ResolvedLockOptions,
  capabilities: Capabilities,
): ResolvedLockOptions {
  const {
    ttl = Math.min(defaults.ttl, capabilities.maxTtl),
    wait = defaults.wait,
    fair = defaults.fair,
  } = given
  const { renew = defaults.renew, maxHold = defaults.maxHold } = given
  checkTtl(ttl, capabilities)
  checkWait('wait', wait)
  checkMaxHold(maxHold)
  if (fair !== 'turns' && fair !== 'strict') {
    throw new InvalidArgumentError(`fair must be 'turns' or 'strict'`, { argument: 'fair' })
  }
  if (typeof renew !== 'boolean') {
    throw new InvalidArgumentError('renew must be true or false', { argument: 'renew' })
  }
  return { ttl, wait, fair, renew, maxHold }
}

export function checkTtl(ttl: number, { minTtl, maxTtl }: Capabilities): void {
  checkMs('ttl', ttl, { min: minTtl, max: maxTtl })
}

export function checkMaxHold(maxHold: number): void {
  if (maxHold !== Infinity) checkMs('maxHold', maxHold, { min: 1, max: MAX_MS })
}

export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal must be an AbortSignal', { argument: 'signal' })
  }
}

export function checkPermits(permits: number, capacity: number): void {
  checkWhole('permits', permits, { min: 1, max: capacity })
}
