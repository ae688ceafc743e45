import { ALL } from '../../core/contract.ts'
import type { Capabilities } from '../../core/contract.ts'
import type { Holdfast } from '../../locks/holdfast.ts'
import type { Lock } from '../../locks/lock.ts'
import type { Lease } from '../../runtime/lease.ts'

/** The kinds of locks that a run uses, one name each. */
export type NameKind = 'mutex' | 'reentrant' | 'read-write' | 'semaphore'

const PERMITS = 3

/** One way to take a name. */
export interface Take {
  readonly lock: Lock
  readonly weight: number
  readonly capacity: number
  readonly permits?: number
  /** Of a writer, where the store can do it. */
  readonly downgrade?: (lease: Lease) => Promise<void>
  /** Nobody else may have it meanwhile: the counters may be changed. */
  readonly alone: boolean
}

export function kindsFor({ shared, permits }: Capabilities): readonly NameKind[] {
  return [
    'mutex',
    'reentrant',
    ...(shared ? ['read-write' as const] : []),
    ...(permits ? ['semaphore' as const] : []),
  ]
}

/** `chance` decides between reader and writer, and how many permits. */
export function takeOf(holdfast: Holdfast, kind: NameKind, chance: number): Take {
  switch (kind) {
    case 'mutex':
      return { lock: holdfast.mutex(kind), weight: 1, capacity: 1, alone: true }
    case 'reentrant':
      return { lock: holdfast.mutex(kind, { reentrant: true }), weight: 1, capacity: 1, alone: true }
    case 'read-write': {
      const lock = holdfast.readWriteLock(kind)
      if (chance >= 0.6) return { lock: lock.read, weight: 1, capacity: ALL, alone: false }
      const take = { lock: lock.write, weight: ALL, capacity: ALL, alone: true }
      if (holdfast.store.downgrade === undefined) return take
      return { ...take, downgrade: (lease) => lock.downgrade(lease) }
    }
    case 'semaphore': {
      const permits = 1 + Math.floor(chance * 2)
      const lock = holdfast.semaphore(kind, PERMITS)
      return { lock, weight: permits, capacity: PERMITS, permits, alone: false }
    }
  }
}
