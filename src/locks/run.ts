import { LockLostError } from '../core/errors.ts'
import type { RunOutcome } from '../core/errors.ts'
import type { Lease } from '../runtime/lease.ts'
import type { LoopTurns } from '../runtime/loop-turns.ts'

/**
 * What the function of `run` may return: a value, a promise, or now one and now the other. T is inferred from all of it and not from
 * what the promise holds: that is why the second half is written so that nothing can be inferred from it.
 */
export type Returned<T> = T | PromiseLike<NoInfer<T>>

/** What `run` needs of a lease, or of several under one roof. */
export type Releasable = Pick<Lease, 'name' | 'token' | 'assertHeld' | 'release'>

/**
 * Runs the body and releases. The body's own result or error comes out, whatever the release does; only if the lease was lost
 * meanwhile, so that others may have run at the same time, is it wrapped in a LockLostError. Many may get their leases in one moment,
 * and bodies that compute, one after the other, take longer than a lease lasts: so the event loop has its turn between them, and
 * none begins whose lease is lost.
 */
export async function runAndRelease<T>(
  lease: Releasable,
  store: string,
  body: () => Returned<T>,
  loop?: LoopTurns,
): Promise<Awaited<T>> {
  // To look at the lease is to look at the clock, too.
  let lost = lossOf(lease)
  while (lost === undefined && loop?.isLate() === true) {
    await loop.turn()
    lost = lossOf(lease)
  }
  if (lost !== undefined) {
    await lease.release()
    throw neverBegun(lease, store, lost)
  }
  let outcome: RunOutcome
  try {
    outcome = { status: 'fulfilled', value: await body() }
  } catch (reason) {
    outcome = { status: 'rejected', reason }
  }
  const before = lossOf(lease)
  if ((await lease.release()) === 'expired') {
    const { name, token } = lease
    throw new LockLostError(
      `The lease on "${name}" was lost while the function ran; see error.outcome for what it did. Others may have run at the same time.`,
      { lock: name, store, token, outcome, ...(before === undefined ? {} : { cause: before }) },
    )
  }
  if (outcome.status === 'rejected') throw outcome.reason
  return outcome.value as Awaited<T>
}

function neverBegun({ name, token }: Releasable, store: string, cause: unknown): LockLostError {
  return new LockLostError(
    `The lease on "${name}" was lost before the function could begin, so it did not run.`,
    { lock: name, store, token, cause },
  )
}

function lossOf(lease: Releasable): unknown {
  try {
    return lease.assertHeld()
  } catch (error) {
    return error
  }
}
