import { CapacityMismatchError, LockReentryError } from '../core/errors.ts'
import { ClaimLease } from '../runtime/lease.ts'
import type { Lease } from '../runtime/lease.ts'
import { sections } from '../runtime/sections.ts'
import type { Session } from '../runtime/session.ts'
import { NestedLease } from './nested-lease.ts'

/** `permits`: nested claims of a semaphore are claims of their own. */
export type Mode = 'exclusive' | 'write' | 'read' | 'permits'

export interface Kind {
  readonly mode: Mode
  readonly capacity: number
  readonly weight: number
  readonly reentrant: boolean
}

/** A lock that the running code holds by being inside its `run`. */
export interface Section {
  readonly session: Session
  readonly kind: Kind
  readonly lease: Lease
}

interface Holding extends Section {
  readonly name: string
  outer: Holding | undefined
}

const innermost = (): Holding | undefined => sections.getStore() as Holding | undefined

/** Runs code that may ask which locks it is inside of. */
export function runInside<T>(entered: readonly Section[], body: () => T): T {
  let inside = lasting(innermost())
  // Work that outlives its section starts the next one, and that the next: none of them may hang on all before it.
  if (inside !== undefined) inside.outer = lasting(inside.outer)
  for (const { session, kind, lease } of entered) {
    inside = { session, name: lease.name, kind, lease, outer: inside }
  }
  return sections.run(inside, body)
}

/** The first that has not ended: those that have mean nothing any more. */
function lasting(from: Holding | undefined): Holding | undefined {
  let inside = from
  while (inside !== undefined && !inside.lease.held) inside = inside.outer
  return inside
}

/**
 * The lease that a nested acquire shares, or null when it is not nested. Throws where waiting could never end:
 * the code would wait for itself.
 */
export function nestedIn(session: Session, name: string, kind: Kind): ClaimLease | null {
  if (kind.mode === 'permits') return null
  for (let inside = innermost(); inside !== undefined; inside = inside.outer) {
    if (inside.name !== name || inside.session !== session || !inside.lease.held) continue
    const { capacity } = inside.kind
    if (capacity !== kind.capacity) throw otherKind(session, name, kind.capacity, capacity)
    const outer = outermost(inside.lease)
    const downgraded = outer.downgrade !== null
    // A reader adds nothing to what a reader or a writer has already.
    const asMuch = outer.claim.weight === kind.weight
    if (kind.mode === 'read' || (kind.reentrant && asMuch && !downgraded)) return outer
    throw new LockReentryError(
      downgraded
        ? `"${name}" was downgraded to reading here and cannot be upgraded again: release it, then take the write lock.`
        : !asMuch
          ? `"${name}" is held for reading here and cannot be upgraded to writing: release it first, or take the write lock from the start.`
          : `"${name}" is held by the code that asks for it, which would wait for itself. Pass the lease down, make the lock with { reentrant: true }, or start work that nobody waits for with holdfast.outside().`,
      { lock: name },
    )
  }
  return null
}

/** Throws when the code holds so many permits itself that those it wants can never become free. */
export function checkPermitsInside(session: Session, name: string, kind: Kind, wanted: number): void {
  let mine = 0
  for (let inside = innermost(); inside !== undefined; inside = inside.outer) {
    if (inside.name !== name || inside.session !== session || !inside.lease.held) continue
    const { capacity } = inside.kind
    if (capacity !== kind.capacity) throw otherKind(session, name, kind.capacity, capacity)
    mine += outermost(inside.lease).claim.lane.kind.weight
  }
  if (mine === 0 || mine + wanted <= kind.capacity) return
  throw new LockReentryError(
    `The code that asks for ${wanted} of the ${kind.capacity} permits of "${name}" holds ${mine} of them and would wait for itself. Take all that are needed at once ({ permits }), or start work that nobody waits for with holdfast.outside().`,
    { lock: name },
  )
}

function outermost(lease: Lease): ClaimLease {
  if (lease instanceof NestedLease) return lease.outer
  if (lease instanceof ClaimLease) return lease
  throw new TypeError('A lease that no lock gave out')
}

function otherKind(session: Session, lock: string, expected: number, actual: number): CapacityMismatchError {
  const message = `"${lock}" is held here with a capacity of ${actual}, not ${expected}. Use one kind of lock and one capacity per name.`
  return new CapacityMismatchError(message, { lock, store: session.store.kind, expected, actual })
}
