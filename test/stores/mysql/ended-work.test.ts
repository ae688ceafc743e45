import { createConnection, createPool } from 'mysql2/promise'
import type { Pool, PoolConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { mysqlStore } from '../../../src/stores/mysql/index.ts'
import { endedWorkCases } from '../sql/ended-work-cases.ts'

/** What work may do to its transaction and go on. */
const WORKS: Readonly<Record<string, readonly string[]>> = {
  'a commit': ['COMMIT'],
  'a rollback': ['ROLLBACK'],
  'another transaction': ['ROLLBACK', 'BEGIN'],
  'another transaction, which commits the first': ['BEGIN'],
  'a table that is created': ['DROP TABLE IF EXISTS side', 'CREATE TABLE side (a int)'],
  'tables that are locked': ['LOCK TABLES entries WRITE', 'UNLOCK TABLES'],
}

describe.skipIf(!available('mariadb'))('guarded work that ends its transaction, MariaDB', () => {
  let server: Server
  let pool: Pool
  let holdfast: Holdfast
  let names = 0

  beforeAll(async () => {
    server = await mariadb()
    pool = createPool({ uri: server.url, connectionLimit: 4 })
    await pool.query('CREATE TABLE entries (line varchar(100) NOT NULL) ENGINE=InnoDB')
    await pool.query('CREATE TABLE pair (id int PRIMARY KEY, v varchar(20)) ENGINE=InnoDB')
    await pool.query(`INSERT INTO pair VALUES (1, 'old'), (2, 'old')`)
    await pool.query('CREATE TABLE big (id int PRIMARY KEY AUTO_INCREMENT, v int) ENGINE=InnoDB')
    await pool.query('INSERT INTO big (v) SELECT 1 FROM information_schema.columns LIMIT 500')
    holdfast = new Holdfast(mysqlStore(pool))
  })
  afterAll(async () => {
    await holdfast.close({ drain: 0 })
    await pool.end()
    await server.stop()
  })

  const count = async (line: string): Promise<number> =>
    ((await pool.query('SELECT 1 FROM entries WHERE line = ?', [line]))[0] as unknown[]).length

  const cases = Object.keys(WORKS).flatMap((how) => ['returns', 'throws'].map((end) => ({ how, end })))

  it.each(cases)('does not say committed: $how, and then it $end', async ({ how, end }) => {
    const store = mysqlStore(pool)
    const name = `ended ${(names += 1)}`
    const work = async (tx: PoolConnection): Promise<void> => {
      await tx.query('INSERT INTO entries VALUES (?)', [name])
      for (const sql of WORKS[how] ?? []) await tx.query(sql)
      if (end === 'throws') throw new Error('changed my mind')
    }
    const guarded = holdfast.mutex(name).run((lease) => store.guarded(lease, work))
    await expect(guarded).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'work',
      message: expect.stringContaining('was over') as unknown,
    })
    // And the connection is good for the next.
    await holdfast
      .mutex(name)
      .run((lease) =>
        store.guarded(lease, (tx) => tx.query('INSERT INTO entries VALUES (?)', [`${name} next`])),
      )
    expect(await count(`${name} next`)).toBe(1)
  })

  it.each(['swallowed', 'told', 'told as a cause'])(
    'does not say committed after a deadlock that is %s',
    async (how) => {
      const store = mysqlStore(pool)
      const other = await createConnection(server.url)
      const name = `deadlock ${how}`
      const guarded = holdfast.mutex(name).run((lease) =>
        store.guarded(lease, async (tx) => {
          await tx.query(`UPDATE pair SET v = 'first' WHERE id = 1`)
          // The one that has written more is not the victim.
          await other.query('BEGIN')
          await other.query(`UPDATE pair SET v = 'other' WHERE id = 2`)
          await other.query('UPDATE big SET v = v + 1')
          const theirs = other.query(`UPDATE pair SET v = 'other' WHERE id = 1`)
          const mine = tx.query(`UPDATE pair SET v = 'second' WHERE id = 2`)
          const failed: unknown = await mine.catch((error: unknown) => error)
          await theirs
          await other.query('ROLLBACK')
          if (how === 'told') throw failed
          if (how !== 'swallowed') throw new Error('mine', { cause: failed })
          await tx.query(`UPDATE pair SET v = 'second' WHERE id = 2`)
        }),
      )
      const errors = {
        swallowed: { code: 'INVALID_ARGUMENT', argument: 'work' },
        told: { code: 'ER_LOCK_DEADLOCK' },
        'told as a cause': { message: 'mine' },
      }
      await expect(guarded).rejects.toMatchObject(errors[how as keyof typeof errors])
      // What comes after a deadlock commits by itself: that can be told, not undone.
      const [rows] = await pool.query('SELECT v FROM pair ORDER BY id')
      expect(rows).toMatchObject([{ v: 'old' }, { v: how === 'swallowed' ? 'second' : 'old' }])
      await pool.query(`UPDATE pair SET v = 'old'`)
      await other.end()
    },
  )

  endedWorkCases<PoolConnection>(() => ({
    holdfast,
    store: mysqlStore(pool),
    write: (tx, line) => tx.query('INSERT INTO entries VALUES (?)', [line]),
    count,
  }))

  it('does not commit what somebody left in the connection that it is given', async () => {
    const own = createPool({ uri: server.url, connectionLimit: 1 })
    const store = mysqlStore(own)
    const mine = new Holdfast(store)
    const lease = await mine.mutex('leaked').acquire()
    await store.guarded(lease, () => Promise.resolve())
    const leaked = await own.getConnection()
    await leaked.beginTransaction()
    await leaked.query(`INSERT INTO entries VALUES ('leaked')`)
    leaked.release()
    await store.guarded(lease, (tx) => tx.query(`INSERT INTO entries VALUES ('guarded')`))
    expect([await count('leaked'), await count('guarded')]).toEqual([0, 1])
    await mine.close({ drain: 0 })
    await own.end()
  })

  it.each([true, false])('refuses guard outside of a transaction, guarded before %s', async (before) => {
    const store = mysqlStore(pool)
    const lease = await holdfast.mutex(`by hand ${String(before)}`).acquire()
    if (before) await store.guarded(lease, () => Promise.resolve())
    const tx = await pool.getConnection()
    await expect(store.guard(lease, tx)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'tx' })
    await tx.beginTransaction()
    await store.guard(lease, tx)
    await tx.commit()
    await tx.query('SET autocommit = 0')
    await store.guard(lease, tx)
    await tx.commit()
    tx.destroy()
    await lease.release()
  })
})
