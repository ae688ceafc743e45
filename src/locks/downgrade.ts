import { ALL } from '../core/contract.ts'
import { InvalidArgumentError, LockReentryError } from '../core/errors.ts'
import { downgrade } from '../runtime/downgrading.ts'
import { ClaimLease } from '../runtime/lease.ts'
import type { Lease } from '../runtime/lease.ts'
import type { Session } from '../runtime/session.ts'
import { unwatched } from './leak-watch.ts'
import { NestedLease } from './nested-lease.ts'

/** See ReadWriteLock. */
export async function downgradeLease(session: Session, name: string, lease: Lease): Promise<void> {
  await downgrade(writersLease(session, name, unwatched(lease)))
}

function writersLease(session: Session, name: string, lease: Lease): ClaimLease {
  const refusal = (why: string): InvalidArgumentError =>
    new InvalidArgumentError(`lease must be one of the write side of "${name}": ${why}`, {
      argument: 'lease',
      lock: name,
    })
  // Whoever took the outer one counts on writing alone, and has to give that up himself.
  if (lease instanceof NestedLease) throw refusal('this one is nested in another, which is the one to pass.')
  if (!(lease instanceof ClaimLease) || lease.claim.lane.session !== session) {
    throw refusal('this one was not acquired from the same Holdfast.')
  }
  if (lease.name !== name) throw refusal(`this one is of "${lease.name}".`)
  const { capacity, weight } = lease.claim.lane.kind
  if (capacity !== ALL) throw refusal('this one is of another kind of lock.')
  if (weight !== ALL && lease.downgrade === null) throw refusal('this one is of the read side.')
  for (const nested of lease.nested ?? []) {
    if (nested instanceof NestedLease && nested.mode !== 'read') throw nestedWriter(name)
  }
  return lease
}

function nestedWriter(lock: string): LockReentryError {
  const message = `"${lock}" cannot be downgraded while a nested write lease is held: the code that has it counts on writing alone. Release that one first.`
  return new LockReentryError(message, { lock })
}
