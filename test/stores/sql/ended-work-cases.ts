import { expect, it } from 'vitest'

import type { Holdfast } from '../../../src/locks/holdfast.ts'
import type { GuardedLease } from '../../../src/stores/sql/guarded.ts'

/** A store on a pool, whose database has the table `entries (line)`. */
export interface PooledDatabase<Tx> {
  readonly holdfast: Holdfast
  readonly store: { guarded<T>(lease: GuardedLease, work: (tx: Tx) => Promise<T>): Promise<T> }
  readonly write: (tx: Tx, line: string) => Promise<unknown>
  readonly count: (line: string) => Promise<number>
}

/** Work that does to its connection what guarded itself has to. */
export function endedWorkCases<Tx extends { release(): void }>(database: () => PooledDatabase<Tx>): void {
  it('keeps its connection when the work gives it back out of habit, and commits nothing', async () => {
    const { holdfast, store, write, count } = database()
    const name = 'given back'
    const guarded = holdfast.mutex(name).run((lease) =>
      store.guarded(lease, async (tx) => {
        try {
          await write(tx, name)
        } finally {
          tx.release()
        }
      }),
    )
    await expect(guarded).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'work' })
    expect(await count(name)).toBe(0)
    const next = holdfast.mutex(name).run((lease) => store.guarded(lease, () => Promise.resolve('done')))
    expect(await next).toBe('done')
  })
}
