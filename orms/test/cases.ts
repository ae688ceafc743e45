import { setTimeout as sleep } from 'node:timers/promises'

import { Holdfast } from 'holdfast'
import type { Lease, Store } from 'holdfast'
import { expect, it } from 'vitest'

import type {
  fenced,
  GuardedLease,
  optimistic,
  OptimisticTable,
  SqlRunner,
} from '../../src/stores/postgres/index.ts'

/** One ORM on one database, which has the tables `entries (line)` and `stock (shop, item, left_count, version, fence)`. */
export interface Orm {
  /** A transaction of the ORM's, with a function that runs statements in it. */
  transaction<T>(work: (run: SqlRunner) => Promise<T>): Promise<T>
  /** The same function for no transaction. */
  readonly outside: SqlRunner
  close(): Promise<unknown>
}

export interface Database {
  /** With a pool of its own. */
  readonly open: () => Store & { guard(lease: GuardedLease, run: SqlRunner): Promise<void> }
  readonly optimistic: (
    run: SqlRunner,
    options: Parameters<typeof optimistic>[1],
  ) => OptimisticTable<Readonly<Record<string, unknown>>>
  readonly fenced: (run: SqlRunner, options: Parameters<typeof fenced>[1]) => ReturnType<typeof fenced>
  readonly sql: (text: string) => Promise<readonly Record<string, unknown>[]>
}

const KEY = ['shop', 'item']
let made = 0

/** What a transaction of an ORM can be guarded with, and what happens to it if it cannot. */
export function ormCases(database: () => Database, orm: () => Orm): void {
  const write = (run: SqlRunner, line: string): Promise<unknown> =>
    Promise.resolve(run(`INSERT INTO entries (line) VALUES ('${line}')`, []))
  const written = async (line: string): Promise<boolean> =>
    (await database().sql(`SELECT line FROM entries WHERE line = '${line}'`)).length > 0

  const withLease = async (
    work: (lease: Lease, store: ReturnType<Database['open']>, holdfast: Holdfast) => Promise<void>,
    options: { ttl?: number; renew?: boolean } = {},
  ): Promise<void> => {
    const store = database().open()
    const holdfast = new Holdfast(store)
    // With signs that some ORMs take for parameters.
    const lease = await holdfast.mutex(`orm:name? $1 ${(made += 1)}`, options).acquire()
    try {
      await work(lease, store, holdfast)
    } finally {
      await holdfast.close({ drain: 0 })
      await store.close()
    }
  }

  it('commits under a lease that is held', () =>
    withLease(async (lease, store) => {
      const line = `held ${made}`
      await orm().transaction(async (run) => {
        await store.guard(lease, run)
        await write(run, line)
        lease.assertHeld()
      })
      expect(await written(line)).toBe(true)
    }))

  // Once more on a machine so busy that the lease is over before the transaction has begun.
  it('keeps the next holder waiting until the transaction is over', { retry: 2 }, () =>
    withLease(
      async (lease, store) => {
        const other = database().open()
        const thief = new Holdfast(other)
        const order: string[] = []
        let stealing: Promise<Lease> | undefined
        await orm().transaction(async (run) => {
          await store.guard(lease, run)
          stealing = thief.mutex(lease.name).acquire({ wait: 20_000 })
          stealing.then(() => order.push('taken')).catch(() => {})
          while (lease.held) await sleep(20)
          await sleep(300)
          order.push('over')
        })
        await stealing
        expect(order).toEqual(['over', 'taken'])
        await thief.close({ drain: 0 })
        await other.close()
      },
      { ttl: 1000, renew: false },
    ),
  )

  it('stays guarded when a nested transaction, which guards as well, is undone', () =>
    withLease(async (lease, store) => {
      const other = database().open()
      const thief = new Holdfast(other)
      const line = `nested ${made}`
      let givenUp: Promise<unknown> | undefined
      await orm().transaction(async (run) => {
        await store.guard(lease, run)
        for (const end of ['RELEASE SAVEPOINT nested', 'ROLLBACK TO SAVEPOINT nested']) {
          await run('SAVEPOINT nested', [])
          await store.guard(lease, run)
          await write(run, `${line} ${end}`)
          await run(end, [])
        }
        givenUp = lease.release()
        expect(await thief.mutex(lease.name).tryAcquire()).toBe(null)
      })
      await givenUp
      expect(await thief.mutex(lease.name).tryAcquire()).not.toBe(null)
      expect(await written(`${line} RELEASE SAVEPOINT nested`)).toBe(true)
      expect(await written(`${line} ROLLBACK TO SAVEPOINT nested`)).toBe(false)
      await thief.close({ drain: 0 })
      await other.close()
    }))

  it('commits nothing under a lease that is lost', () =>
    withLease(async (lease, store) => {
      const line = `lost ${made}`
      await lease.release()
      const late = orm().transaction(async (run) => {
        await write(run, line)
        await store.guard(lease, run)
      })
      await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST' })
      expect(await written(line)).toBe(false)
    }))

  it('refuses to guard where there is no transaction', () =>
    withLease(async (lease, store) => {
      await expect(store.guard(lease, orm().outside)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'tx',
      })
    }))

  it('changes rows that others have left alone, and no others', async () => {
    const { sql, optimistic, fenced } = database()
    const item = { shop: 'a', item: (made += 1) }
    await sql(`INSERT INTO stock VALUES ('a', ${item.item}, 5, 0, NULL), ('b', ${item.item}, 5, 0, NULL)`)
    const left = async (): Promise<unknown> =>
      (await sql(`SELECT left_count FROM stock WHERE item = ${item.item} ORDER BY shop`)).map((row) =>
        Number(row['left_count']),
      )
    await orm().transaction(async (run) => {
      const stock = optimistic(run, { table: 'stock', key: KEY })
      expect(
        await stock.update(item, (row) => ({ left_count: Number(row['left_count']) - 1 })),
      ).toMatchObject({
        kind: 'updated',
        attempts: 1,
      })
      expect(await stock.update({ shop: 'c', item: item.item }, () => ({ left_count: 0 }))).toEqual({
        kind: 'missing',
      })
      const places = fenced(run, { table: 'stock', key: KEY })
      expect(await places.update(item, 1_794_780_646_347_432n, { left_count: 3 })).toBe('written')
      expect(await places.update(item, 1_794_780_646_347_431n, { left_count: 2 })).toBe('stale')
      expect(await places.update({ shop: 'c', item: 0 }, 1n, { left_count: 2 })).toBe('missing')
    })
    expect(await left()).toEqual([3, 5])
    // Somebody else is faster, from a connection of his own.
    const conflict = orm().transaction((run) =>
      optimistic(
        async (text, params) => {
          if (text.startsWith('UPDATE')) {
            await sql(`UPDATE stock SET version = version + 1 WHERE shop = 'a' AND item = ${item.item}`)
          }
          return (await run(text, params)) as unknown
        },
        { table: 'stock', key: KEY },
      ).update(item, () => ({ left_count: 0 })),
    )
    await expect(conflict).rejects.toMatchObject({ code: 'CONFLICT', attempts: 1 })
    expect(await left()).toEqual([3, 5])
  })
}
