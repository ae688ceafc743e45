import { checkBoolean, checkMs, checkOptions, checkWait, checkWhole, MAX_MS } from '../core/arguments.ts'
import type { Capabilities, ListQuery } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { leastTtl } from '../core/validity.ts'
import type { ClockOptions } from '../runtime/clock.ts'
import type { Env } from '../runtime/env.ts'

/** All times are milliseconds. */
export interface LockOptions {
  /** How long the store keeps the lock if this process dies. Renewed at a third of it. Default 15,000. */
  readonly ttl?: number | undefined
  /** How long `acquire` and `run` wait for the lock. 0: not at all. Infinity: for ever. Default 30,000. */
  readonly wait?: number | undefined
  /**
   * `turns`: a process hands the lock from task to task while its turn lasts, then to the next process.
   * `strict`: as soon as another process is known to wait, every release goes to the next in the store's queue.
   */
  readonly fair?: 'turns' | 'strict' | undefined
  /** `false`: the lease is not renewed and ends after its ttl. Default true. */
  readonly renew?: boolean | undefined
  /** The longest that a lease may be held, renewed or not; of a set, from when all of it is. Default Infinity. */
  readonly maxHold?: number | undefined
}

export interface ReentrantOptions extends LockOptions {
  /** Inside its own `run`, the lock may be taken again: counted, same token. Default false: a typed error. */
  readonly reentrant?: boolean | undefined
}

export interface HoldfastOptions extends LockOptions {
  /** What a process may do in one turn while others wait. Default 256 sections or 4 ms. */
  readonly turn?: { readonly count?: number | undefined; readonly ms?: number | undefined } | undefined
  /** How long the store keeps a waiter that says nothing. Default 5,000. */
  readonly patience?: number | undefined
  /** How long one request to the store may take. Default 5,000. */
  readonly requestTimeout?: number | undefined
  /** Who holds the locks, in words for people; shown by `inspect`. Default: host name and process id. */
  readonly owner?: string | undefined
  /** `close()` closes the store too. Default false; `open()` makes it true. */
  readonly closeStore?: boolean | undefined
  readonly clock?: ClockOptions | undefined
  /**
   * A warning (`process.on('warning')`) when a lease was forgotten without release: it is renewed for as long as the process lives. The first
   * leases of a Holdfast are watched, and a sample of the later ones. Default true.
   */
  readonly leakWarnings?: boolean | undefined
  /** Clocks, timers and randomness; for tests and simulations. */
  readonly env?: Env | undefined
}

export interface AcquireOptions {
  readonly wait?: number | undefined
  readonly ttl?: number | undefined
  readonly maxHold?: number | undefined
  /** Ends the wait. Has no effect on a lease that was given out. */
  readonly signal?: AbortSignal | undefined
}

export interface PermitOptions extends AcquireOptions {
  /** How many permits to take at once. Default 1. */
  readonly permits?: number | undefined
}

export type ResolvedLockOptions = {
  readonly [K in keyof LockOptions]-?: Exclude<LockOptions[K], undefined>
}

/** The names of the options, for the check that there are no others. */
const LOCK: readonly (keyof LockOptions)[] = ['ttl', 'wait', 'fair', 'renew', 'maxHold']
const CALL: readonly (keyof AcquireOptions)[] = ['wait', 'ttl', 'maxHold', 'signal']
const OF_HOLDFAST: readonly (keyof HoldfastOptions)[] = [
  ...LOCK,
  'turn',
  'patience',
  'requestTimeout',
  'owner',
  'closeStore',
  'clock',
  'env',
  'leakWarnings',
]
const LIST: readonly (keyof ListQuery)[] = ['prefix', 'limit', 'cursor']
const CLOSE = ['drain', 'timeout', 'release']
type Call =
  | 'lock'
  | 'reentrant'
  | 'holdfast'
  | 'turn'
  | 'clock'
  | 'acquire'
  | 'permits'
  | 'list'
  | 'close'
  | 'closeOn'
export const OPTIONS: Readonly<Record<Call, readonly string[]>> = {
  lock: LOCK,
  reentrant: [...LOCK, 'reentrant'],
  holdfast: OF_HOLDFAST,
  turn: ['count', 'ms'],
  clock: ['wall'],
  acquire: CALL,
  permits: [...CALL, 'permits'],
  list: LIST,
  close: CLOSE,
  closeOn: [...CLOSE, 'onClosed'],
}

/** Where an option belongs that was given to another call. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  reentrant: 'It belongs to the lock: mutex(name, { reentrant: true }).',
  fair: 'It belongs to the lock: mutex(name, { fair }).',
  renew: 'It belongs to the lock: mutex(name, { renew }).',
  permits: 'It belongs to the call: acquire({ permits }) of a semaphore.',
  signal: 'It belongs to the call: acquire({ signal }).',
  timeout: 'Did you mean "wait"?',
  retries: 'Waiters are woken: "wait" says for how long they wait.',
  lease: 'Did you mean "ttl"?',
  duration: 'Did you mean "ttl"?',
  expires: 'Did you mean "ttl"?',
}

export function checkCallOptions(options: PermitOptions, mode: 'wait' | 'try', permits: boolean): void {
  if ((options as unknown) instanceof AbortSignal)
    throw new InvalidArgumentError('options must be an object: pass { signal }', { argument: 'options' })
  checkOptions(options, permits ? OPTIONS.permits : OPTIONS.acquire, 'wait', ELSEWHERE)
  if (mode === 'try' && options.wait !== undefined)
    throw new InvalidArgumentError('tryAcquire does not wait. To wait for so long: acquire({ wait })', {
      argument: 'wait',
    })
}

export function checkLockOptions(options: ReentrantOptions, known: readonly string[]): void {
  checkOptions(options, known, 'ttl', ELSEWHERE)
  checkBoolean('reentrant', options.reentrant)
}

/** Before anything is taken that the body would have to release. */
export function checkBody(body: unknown): void {
  if (typeof body === 'function') return
  const isPromise = typeof body === 'object' && body !== null && 'then' in body
  const instead = isPromise
    ? 'pass a function that starts the work, () => work(), and not the work itself'
    : 'run(body, options)'
  throw new InvalidArgumentError(`body must be a function: ${instead}`, { argument: 'body' })
}

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
  checkBoolean('renew', renew)
  return { ttl, wait, fair, renew, maxHold }
}

export function checkTtl(ttl: number, capabilities: Capabilities): void {
  checkMs('ttl', ttl, { min: leastTtl(capabilities), max: capabilities.maxTtl })
}

const ENV: readonly (keyof Env)[] = ['mono', 'boot', 'wall', 'setTimer', 'defer', 'randomId', 'random']

export function checkEnv(env: unknown): void {
  const given = env as Readonly<Record<string, unknown>> | null
  const missing = ENV.filter((name) => typeof given?.[name] !== 'function')
  if (missing.length > 0)
    throw new InvalidArgumentError(`env must have the functions ${missing.join(', ')}`, { argument: 'env' })
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
