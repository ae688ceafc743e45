import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lease } from '../../../src/runtime/lease.ts'
import type { GuardedLease } from '../../../src/stores/sql/guarded.ts'
import type { SqlRunner } from '../../../src/stores/sql/runner.ts'

export interface OwnTransaction {
  readonly store: Store & { guard(lease: GuardedLease, run: SqlRunner): void | Promise<void> }
  /** Its connection or a function, in whatever way it is passed to `guard`. */
  readonly guard: (lease: GuardedLease) => Promise<void>
  /** A function of its own for each call, as the adapters of ORMs make them. */
  readonly newRunner: () => SqlRunner
  readonly begin: () => Promise<unknown>
  readonly rollback: () => Promise<unknown>
  readonly end: () => Promise<unknown>
}

const MANY = 6
let made = 0

/** One transaction that several leases guard, none of which is waited for before the next. */
export function guardsAtOnceCases(open: () => Promise<OwnTransaction>): void {
  const withLeases = async (
    work: (transaction: OwnTransaction, leases: readonly Lease[]) => Promise<void>,
  ): Promise<void> => {
    const transaction = await open()
    const holdfast = new Holdfast(transaction.store)
    const names = Array.from({ length: MANY }, () => `at once ${(made += 1)}`)
    const leases = await Promise.all(names.map((name) => holdfast.mutex(name).acquire()))
    try {
      await work(transaction, leases)
    } finally {
      await transaction.end()
      await holdfast.close({ drain: 0 })
    }
  }

  it('guards with several leases, one after the other', () =>
    withLeases(async ({ store, newRunner, guard, begin, rollback }, leases) => {
      await begin()
      for (const lease of leases.slice(1)) expect(await guard(lease)).toBeUndefined()
      // One more look, after it has been guarded for a while.
      for (const lease of leases) expect(await store.guard(lease, newRunner())).toBeUndefined()
      await rollback()
    }))

  it('guards with several leases at once', () =>
    withLeases(async ({ guard, begin, rollback }, leases) => {
      for (let round = 0; round < 3; round++) {
        await begin()
        expect(await failures(leases, guard)).toEqual([])
        await rollback()
      }
    }))

  it('guards with several leases at once, through one function and through one each', () =>
    withLeases(async ({ store, newRunner, begin, rollback }, leases) => {
      const one = newRunner()
      for (const runner of [() => one, newRunner]) {
        await begin()
        expect(await failures(leases, (lease) => store.guard(lease, runner()))).toEqual([])
        await rollback()
      }
    }))

  it('refuses each of several at once in no transaction', () =>
    withLeases(async ({ store, newRunner }, leases) => {
      const one = newRunner()
      for (const runner of [() => one, newRunner]) {
        const refused = await failures(leases, (lease) => store.guard(lease, runner()))
        expect(refused).toHaveLength(leases.length)
        for (const error of refused) expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'tx' })
      }
    }))
}

/** What went wrong when all are guarded with at once. */
async function failures(
  leases: readonly Lease[],
  guard: (lease: Lease) => void | Promise<void>,
): Promise<readonly unknown[]> {
  const ends = await Promise.allSettled(leases.map(async (lease) => guard(lease)))
  return ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
}
