import { LockLostError } from '../../core/errors.ts'
import { enterGuard, leaveGuard } from './guarded-names.ts'
import { load } from './row.ts'
import type { Row } from './row.ts'

/** What a guard has to know of a lease. */
export interface GuardedLease {
  readonly name: string
  readonly token: bigint
}

/**
 * Throws unless the row, which the caller's transaction has locked, says that the lease's grant still stands. Leases do
 * not tell their claim's id, and need not: tokens are unique, and a grant owns the block that it was given.
 */
export function checkGuard(row: Row | undefined, { name, token }: GuardedLease, store: string): void {
  if (row !== undefined) {
    for (const holder of load(row, 1).state.holders.values()) {
      const first = BigInt(holder.token)
      if (first <= token && token < first + BigInt(holder.count) && holder.expiresAt * 1000 > row.now) return
    }
  }
  throw new LockLostError(
    `The lease on "${name}" is not held any more: nothing was committed. Take the lock again and start over.`,
    { lock: name, store, token },
  )
}

/** Keeps the renewals of other names apart while the work has this one's row locked. */
export async function whileGuarded<T>(name: string, work: () => Promise<T>): Promise<T> {
  enterGuard(name)
  try {
    return await work()
  } finally {
    leaveGuard(name)
  }
}
