import { ALL } from '../../../core/contract.ts'
import type { Holdfast } from '../../../locks/holdfast.ts'
import type { LockOptions } from '../../../locks/options.ts'
import type { Lock, ReadWriteLock } from '../../../locks/lock.ts'
import type { Lease } from '../../../runtime/lease.ts'
import { STRIPES } from './generate.ts'
import type { LockRef, Section } from './program.ts'
import type { Call, Grant, Wanted } from './trace.ts'

/** A lease in a section of the program, and the sections around it. */
export interface Inside {
  readonly lease: Lease
  readonly grant: Grant
  readonly ref: LockRef
  readonly outer: Inside | undefined
}

/** What a reference stands for. */
export interface Made {
  readonly ref: LockRef
  readonly lock: Lock
  readonly both: ReadWriteLock | undefined
}

/** `defaults`: what is said where the lock is made, and not in the call. */
export function make(holdfast: Holdfast, ref: LockRef, defaults: LockOptions): Made {
  const { name, mode, key, capacity = 1, reentrant = false, renew = true, ttl } = ref
  const options = { ...defaults, renew, ...(ttl === undefined ? {} : { ttl }) }
  if (mode === 'permits') return { ref, lock: holdfast.semaphore(name, capacity, options), both: undefined }
  if (key !== undefined) {
    return { ref, lock: holdfast.striped(name, STRIPES, { ...options, reentrant }).for(key), both: undefined }
  }
  if (mode === 'mutex') return { ref, lock: holdfast.mutex(name, { ...options, reentrant }), both: undefined }
  const both = holdfast.readWriteLock(name, { ...options, reentrant })
  return { ref, lock: both[mode], both }
}

/** What asking for a lock means in a place. */
export function wanted(
  { ref, lock }: Made,
  { permits = 1, wait, how }: Section,
  place: Inside | undefined,
): Wanted {
  const { mode, capacity: permitsInAll = 1 } = ref
  const capacity = mode === 'permits' ? permitsInAll : mode === 'mutex' ? 1 : ALL
  const weight = mode === 'permits' ? permits : mode === 'write' ? ALL : 1
  const { name } = lock
  const wanted = { name, mode, weight, capacity, renewed: ref.renew !== false }
  if (mode !== 'permits') return { ...wanted, ...nestingOf(ref, name, place) }
  const waits = how !== 'try' && wait !== 0
  return { ...wanted, ...permitsInside(name, waits ? capacity - weight : Infinity, place) }
}

/** The documented rule: who holds a name already shares it, or is told that it would wait for itself. */
function nestingOf(
  ref: LockRef,
  name: string,
  place: Inside | undefined,
): Pick<Wanted, 'nesting' | 'inside'> {
  for (let around = place; around !== undefined; around = around.outer) {
    const { grant, lease } = around
    if (grant.name !== name || !lease.held) continue
    const shares =
      ref.mode === 'read' ||
      (ref.reentrant === true && rootOf(grant).mode === ref.mode && rootOf(grant).readsFrom === undefined)
    return { nesting: shares ? 'shares' : 'refused', inside: grant }
  }
  return { nesting: 'none', inside: undefined }
}

/** Permits add up. Who has so many that the rest can never be enough would wait for itself. */
function permitsInside(
  name: string,
  most: number,
  place: Inside | undefined,
): Pick<Wanted, 'nesting' | 'inside'> {
  let mine = 0
  let inside: Grant | undefined
  for (let around = place; around !== undefined; around = around.outer) {
    if (around.grant.name !== name || !around.lease.held) continue
    mine += around.grant.weight
    inside ??= around.grant
  }
  return mine > most && mine > 0 ? { nesting: 'refused', inside } : { nesting: 'none', inside: undefined }
}

/**
 * Whether a call is nested for good: work that a section started in its last moment, and that goes on when the section has
 * ended, is asked again then.
 */
export function isNested({ from, set }: Call, { nesting, inside }: Wanted): boolean {
  if (nesting === 'none') return false
  return (nesting === 'shares' && !set) || inside?.to === undefined || inside.to > from
}

/** Leases with those that are nested in them. */
export function familiesOf(grants: readonly Grant[]): ReadonlyMap<Grant, readonly Grant[]> {
  const families = new Map<Grant, Grant[]>()
  for (const grant of grants) {
    const root = rootOf(grant)
    families.set(root, [...(families.get(root) ?? []), grant])
  }
  return families
}

export function rootOf(grant: Grant): Grant {
  return grant.inside === undefined ? grant : rootOf(grant.inside)
}
