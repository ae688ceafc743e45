import type { Unknown } from '../core/contract.ts'
import {
  BrokenStoreError,
  CapacityMismatchError,
  ClosedError,
  LockAbortedError,
  LockTimeoutError,
  StoreUnavailableError,
} from '../core/errors.ts'
import { bare, isError } from '../core/error-printing.ts'
import type { Lane } from './lane.ts'

/** Why a task goes without its lease. */

type Where = Pick<Lane, 'name' | 'session' | 'capacity'>

const details = ({ name, session }: Where): { lock: string; store: string } => ({
  lock: name,
  store: session.store.kind,
})

export function timedOut(lane: Where, waited: number): LockTimeoutError {
  const message = `"${lane.name}" was not free within ${waited} ms. Wait longer, or see who holds it with inspect().`
  return new LockTimeoutError(message, { ...details(lane), waited })
}

export function notFree(lane: Where, waited: number): LockTimeoutError {
  const message = `"${lane.name}" is not free, and the call was not to wait for it.`
  return new LockTimeoutError(message, { ...details(lane), waited })
}

export function unavailable(lane: Where, answer: Unknown): StoreUnavailableError | BrokenStoreError {
  const { retryable } = answer
  const cause = bare(answer.cause)
  if (cause instanceof BrokenStoreError) return cause
  const message = noAnswer(lane.session.store.kind, answer, `, so "${lane.name}" was not acquired`)
  return new StoreUnavailableError(message, { ...details(lane), cause, retryable })
}

/** With what the driver or the server said: a wrong password is no silence. `so`: what came of it. */
export function noAnswer(store: string, answer: Unknown, so = ''): string {
  const cause = bare(answer.cause)
  const [said = ''] = isError(cause) ? String(cause.message).split('\n', 1) : []
  const words = said === '' ? '.' : `: ${said.replace(/\.?$/, '.')}`
  return answer.retryable === false
    ? `The ${store} store cannot be used${so}${words}`
    : `The ${store} store could not be asked${so}${words} Check that it runs, can be reached and takes writes.`
}

export function mismatch(lane: Where, actual: number): CapacityMismatchError {
  const { name, capacity: expected } = lane
  const message = `"${name}" is in use with a capacity of ${actual}, not ${expected}. Use one kind of lock and one capacity per name.`
  return new CapacityMismatchError(message, { ...details(lane), expected, actual })
}

export function closed(lane: Where): ClosedError {
  return new ClosedError(`"${lane.name}" cannot be acquired: the Holdfast was closed.`, details(lane))
}

export function closing(lane: Where, drain: number): ClosedError {
  const message = `The Holdfast is closing. "${lane.name}" stays locked until you release it, for ${drain} ms at most: finish now.`
  return new ClosedError(message, details(lane))
}

/** Its Holdfast closes without a release. */
export function runningOut(lane: Where, left: number): ClosedError {
  const message = `The Holdfast is closing. "${lane.name}" is not renewed any more and ends in ${left} ms: finish now.`
  return new ClosedError(message, details(lane))
}

export function aborted(lane: Where, signal: AbortSignal): LockAbortedError {
  const cause: unknown = signal.reason
  return new LockAbortedError(`The wait for "${lane.name}" was aborted.`, { ...details(lane), cause })
}

/** `what` it did that no store may do. */
export function brokenStore(store: string, method: string, what: string, thrown?: unknown): BrokenStoreError {
  const cause = bare(thrown)
  const reason = isError(cause) ? `: ${cause.message}` : ''
  const message = `The ${store} store is broken: ${method}() ${what}${reason}. A store answers as its contract says, and { kind: 'unknown', cause } when it cannot; holdfast/testkit tests one.`
  return new BrokenStoreError(message, { store, method, cause })
}
