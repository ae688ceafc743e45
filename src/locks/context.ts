import { AsyncLocalStorage } from 'node:async_hooks'
import { LockReentryError } from '../core/errors.ts'
import { ClaimLease } from '../runtime/lease.ts'
import type { Lease } from '../runtime/lease.ts'
import type { Session } from '../runtime/session.ts'
import { outermost } from './nested-lease.ts'

/** `permits`: nested claims of a semaphore are claims of their own. */
export type Mode = 'exclusive' | 'write' | 'read' | 'permits'

/** A lock that the running code holds by being inside its `run`. */
interface Holding {
  readonly session: Session
  readonly name: string
  readonly mode: Mode
  readonly lease: Lease
  readonly outer: Holding | undefined
}

const holdings = new AsyncLocalStorage<Holding>()

/** Runs code that may ask which locks it is inside of. */
export function runInside<T>(session: Session, mode: Mode, lease: Lease, body: () => T): T {
  const outer = holdings.getStore()
  return holdings.run({ session, name: lease.name, mode, lease, outer }, body)
}

/**
 * The lease that a nested acquire may share, or null when it is not nested. Throws where waiting could never end:
 * the code would wait for itself.
 */
export function nestedIn(session: Session, name: string, mode: Mode, reentrant: boolean): Lease | null {
  if (mode === 'permits') return null
  for (let inside = holdings.getStore(); inside !== undefined; inside = inside.outer) {
    if (inside.name !== name || inside.session !== session || !inside.lease.held) continue
    const downgraded = wasDowngraded(inside.lease)
    // A reader adds nothing to what a reader or a writer has already.
    if (mode === 'read' || (reentrant && inside.mode === mode && !downgraded)) return inside.lease
    throw new LockReentryError(
      downgraded
        ? `"${name}" was downgraded to reading here and cannot be upgraded again: release it, then take the write lock.`
        : inside.mode === 'read'
          ? `"${name}" is held for reading here and cannot be upgraded to writing: release it first, or take the write lock from the start.`
          : `"${name}" is held by the code that asks for it, which would wait for itself. Pass the lease down, or make the lock with { reentrant: true }.`,
      { lock: name },
    )
  }
  return null
}

function wasDowngraded(lease: Lease): boolean {
  const outer = outermost(lease)
  return outer instanceof ClaimLease && outer.downgrade !== null
}
