/**
 * Every error that holdfast throws, with a stable `code`. docs/errors.md lists the same ones; a test compares the two.
 * An error carries plain facts (name, times, store) and a `cause`, never a claim's id, a password or a client object.
 */

import { bare, errorJson, errorText, revive } from './error-printing.ts'
import { printWith } from './printing.ts'

export type ErrorCode =
  | 'LOCK_TIMEOUT'
  | 'LOCK_LOST'
  | 'LOCK_ABORTED'
  | 'LOCK_REENTRY'
  | 'STORE_UNAVAILABLE'
  | 'STORE_BROKEN'
  | 'QUORUM_UNAVAILABLE'
  | 'UNSUPPORTED'
  | 'INVALID_ARGUMENT'
  | 'CAPACITY_MISMATCH'
  | 'CLOSED'
  | 'DRIVER_MISSING'
  | 'CONFLICT'

export interface ErrorDetails {
  readonly cause?: unknown
  /** The lock's name. */
  readonly lock?: string
  /** The store's kind. */
  readonly store?: string
}

/** What a function under a lock did although the lock was lost meanwhile. */
export type RunOutcome =
  | { readonly status: 'fulfilled'; readonly value: unknown }
  | { readonly status: 'rejected'; readonly reason: unknown }

// Two copies of the package in one process must recognise each other's errors.
const brand = (code: ErrorCode | 'ANY'): symbol => Symbol.for(`holdfast.error.${code}`)

export class HoldfastError extends Error {
  readonly code: ErrorCode
  // Declared, not defined: a field that nobody set would be printed as undefined.
  declare readonly lock?: string
  declare readonly store?: string

  constructor(code: ErrorCode, message: string, { cause, lock, store }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    if (lock !== undefined) this.lock = lock
    if (store !== undefined) this.store = store
    this.name = new.target.name
    for (const mark of [brand('ANY'), brand(code)]) Object.defineProperty(this, mark, { value: true })
  }

  /** Plain facts, for logs, threads and networks; tokens are strings. */
  toJSON(): Record<string, unknown> {
    return errorJson(this)
  }

  /** The error that became what `toJSON` said, of its class, with its fields: on the other side of a thread or a network. */
  static from(json: unknown): HoldfastError {
    const error = revive(json, (code) => classOf.get(code as ErrorCode))
    if (error !== null) return error as HoldfastError
    const message = 'json must be what toJSON() of a HoldfastError returned'
    throw new InvalidArgumentError(message, { argument: 'json' })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const code = codeOf.get(this)
    // A user's own subclass has no code of its own: the ordinary rule applies to it.
    if (code === undefined) return Function.prototype[Symbol.hasInstance].call(this, value)
    return typeof value === 'object' && value !== null && brand(code) in value
  }
}

/** The lock did not become free within `wait`. */
export class LockTimeoutError extends HoldfastError {
  readonly waited: number

  constructor(message: string, details: ErrorDetails & { readonly waited: number }) {
    super('LOCK_TIMEOUT', message, details)
    this.waited = details.waited
  }
}

/** The lease ended before it was released: somebody else may hold the lock. */
export class LockLostError extends HoldfastError {
  readonly token: bigint
  /** Only from `run`: what the function returned or threw. */
  declare readonly outcome?: RunOutcome

  constructor(
    message: string,
    details: ErrorDetails & { readonly token: bigint; readonly outcome?: RunOutcome },
  ) {
    super('LOCK_LOST', message, details)
    this.token = details.token
    if (details.outcome !== undefined) this.outcome = details.outcome
  }
}

/** The caller's AbortSignal ended the wait; `cause` is its reason. */
export class LockAbortedError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('LOCK_ABORTED', message, details)
  }
}

/** A lock was asked for inside its own `run`, where waiting for it could never end. */
export class LockReentryError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('LOCK_REENTRY', message, details)
  }
}

/** The store did not answer, or not in time. Nothing is known to be held. */
export class StoreUnavailableError extends HoldfastError {
  /** There when asking again cannot help: a wrong password, a missing right, an unsupported server. */
  declare readonly retryable?: false

  constructor(message: string, details: ErrorDetails & { readonly retryable?: false | undefined } = {}) {
    super('STORE_UNAVAILABLE', message, { ...details, cause: bare(details.cause) })
    if (details.retryable === false) this.retryable = false
  }
}

/** The store does not keep its contract: `method` threw, rejected, or answered what is none of its answers. */
export class BrokenStoreError extends HoldfastError {
  readonly method: string

  constructor(message: string, details: ErrorDetails & { readonly method: string }) {
    super('STORE_BROKEN', message, { ...details, cause: bare(details.cause) })
    this.method = details.method
  }
}

/** What one store of a quorum said last. */
export interface NodeState {
  /** Which one: its address, without secrets, or its number. */
  readonly node: string
  /** `asked`: it had not answered yet when the outcome was certain. */
  readonly state: 'granted' | 'busy' | 'not ready' | 'no answer' | 'asked'
  readonly detail?: string
}

/** Too few stores of a quorum can vote, whoever holds the lock. The `cause` of a StoreUnavailableError. */
export class QuorumUnavailableError extends HoldfastError {
  readonly nodes: readonly NodeState[]
  /** How many have to agree. */
  readonly needed: number

  constructor(
    message: string,
    details: ErrorDetails & { readonly nodes: readonly NodeState[]; readonly needed: number },
  ) {
    super('QUORUM_UNAVAILABLE', message, details)
    this.nodes = details.nodes
    this.needed = details.needed
  }
}

/** The store cannot do this; the message names one that can. */
export class UnsupportedError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('UNSUPPORTED', message, details)
  }
}

/** An argument is wrong. Nothing was asked of the store. */
export class InvalidArgumentError extends HoldfastError {
  readonly argument: string

  constructor(message: string, details: ErrorDetails & { readonly argument: string }) {
    super('INVALID_ARGUMENT', message, details)
    this.argument = details.argument
  }
}

/** The name is in use with another capacity. */
export class CapacityMismatchError extends HoldfastError {
  readonly expected: number
  readonly actual: number

  constructor(
    message: string,
    details: ErrorDetails & { readonly expected: number; readonly actual: number },
  ) {
    super('CAPACITY_MISMATCH', message, details)
    this.expected = details.expected
    this.actual = details.actual
  }
}

/** The Holdfast was closed. */
export class ClosedError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('CLOSED', message, details)
  }
}

/** The store's driver package is not installed; the message says how to install it. */
export class DriverMissingError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('DRIVER_MISSING', message, details)
  }
}

/** Optimistic locking: somebody else was faster, again and again. Nothing was changed. */
export class ConflictError extends HoldfastError {
  readonly table: string
  readonly attempts: number

  constructor(
    message: string,
    details: ErrorDetails & { readonly table: string; readonly attempts: number },
  ) {
    super('CONFLICT', message, details)
    this.table = details.table
    this.attempts = details.attempts
  }
}

const codeOf = new Map<unknown, ErrorCode | 'ANY'>([
  [HoldfastError, 'ANY'],
  [LockTimeoutError, 'LOCK_TIMEOUT'],
  [LockLostError, 'LOCK_LOST'],
  [LockAbortedError, 'LOCK_ABORTED'],
  [LockReentryError, 'LOCK_REENTRY'],
  [StoreUnavailableError, 'STORE_UNAVAILABLE'],
  [BrokenStoreError, 'STORE_BROKEN'],
  [QuorumUnavailableError, 'QUORUM_UNAVAILABLE'],
  [UnsupportedError, 'UNSUPPORTED'],
  [InvalidArgumentError, 'INVALID_ARGUMENT'],
  [CapacityMismatchError, 'CAPACITY_MISMATCH'],
  [ClosedError, 'CLOSED'],
  [DriverMissingError, 'DRIVER_MISSING'],
  [ConflictError, 'CONFLICT'],
])

const classOf = new Map([...codeOf].map(([made, code]) => [code, made as ErrorClass]))
// Every error has a code of its own.
classOf.delete('ANY')

interface ErrorClass {
  new (message: string, details: ErrorDetails): HoldfastError
}

printWith(HoldfastError, { inspect: errorText, short: '[HoldfastError]' })
