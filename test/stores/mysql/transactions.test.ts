import { createPool } from 'mysql2/promise'
import type { Pool, PoolConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { fenced, mysqlStore, optimistic } from '../../../src/stores/mysql/index.ts'
import type { SqlRunner } from '../../../src/stores/mysql/index.ts'
import { guardMatrix } from '../sql/guard-matrix.ts'
import { guardedCases } from '../sql/guarded-cases.ts'
import { guardsAtOnceCases } from '../sql/guards-at-once-cases.ts'
import { neighbourCases } from '../sql/neighbour-cases.ts'
import { waitingCases } from '../sql/waiting-cases.ts'
import { userTableCases, userTransactionCases } from '../sql/user-table-cases.ts'
import type { UserDatabase } from '../sql/user-table-cases.ts'

describe.skipIf(!available('mariadb')).each([
  ['with FOUND_ROWS, as mysql2 has it', []],
  ['without FOUND_ROWS', ['-FOUND_ROWS']],
])('MariaDB %s', (_, flags) => {
  let server: Server
  let pool: Pool

  beforeAll(async () => {
    server = await mariadb()
    pool = createPool({ uri: server.url, connectionLimit: 10, flags })
    await pool.query('CREATE TABLE entries (line varchar(100) NOT NULL)')
    await pool.query(
      'CREATE TABLE bonus (id int PRIMARY KEY, left_count int NOT NULL, version bigint NOT NULL)',
    )
    await pool.query('CREATE TABLE seat (id int PRIMARY KEY, owner varchar(100), fence bigint)')
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  describe('a transaction that is guarded by a lease', () => {
    guardedCases<PoolConnection>(() => ({
      open: () => mysqlStore(pool),
      write: (tx, line) => tx.query('INSERT INTO entries VALUES (?)', [line]),
      lines: async () => {
        const [rows] = await pool.query('SELECT line FROM entries')
        return (rows as { line: string }[]).map(({ line }) => line)
      },
    }))
  })

  describe('a transaction, whatever happens to the lease that guards it', () => {
    guardMatrix(() => {
      const store = mysqlStore(pool)
      return {
        store,
        guarded: (lease, line, inside) =>
          store.guarded(lease, async (tx) => {
            await tx.query('INSERT INTO entries VALUES (?)', [line])
            await inside()
          }),
        lines: async () => {
          const [rows] = await pool.query('SELECT line FROM entries')
          return (rows as { line: string }[]).map(({ line }) => line)
        },
      }
    }, true)
  })

  describe('a transaction of one’s own that several leases guard', () => {
    guardsAtOnceCases(async () => {
      const store = mysqlStore(pool)
      const tx = await pool.getConnection()
      return {
        store,
        guard: (lease) => store.guard(lease, tx),
        newRunner: () => (sql, params) => tx.query(sql, params),
        begin: () => tx.beginTransaction(),
        rollback: () => tx.rollback(),
        end: () => Promise.resolve(tx.release()),
      }
    })
  })

  describe('a transaction that has read before it is guarded', () => {
    const guardAfterReading = async (
      name: string,
      { leaseFirst }: { leaseFirst: boolean },
    ): Promise<unknown> => {
      const store = mysqlStore(pool)
      await using holdfast = new Holdfast(store)
      const lock = holdfast.mutex(name)
      const early = leaseFirst ? await lock.acquire() : undefined
      const tx = await pool.getConnection()
      await tx.beginTransaction()
      await tx.query('SELECT * FROM holdfast_locks')
      const lease = early ?? (await lock.acquire())
      const end = await store.guard(lease, tx).then(
        () => 'guarded',
        ({ code }: { code: unknown }) => code,
      )
      await tx.rollback()
      tx.release()
      await lease.release()
      return end
    }
    /** MariaDB from 11.6 on locks nothing that is newer than what the transaction has seen. */
    const refusesNewer = async (): Promise<boolean> => {
      const [rows] = await pool.query("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")
      return (rows as { Value: string }[])[0]?.Value === 'ON'
    }

    it('may be, if the lease was granted before, where servers do not mind a row that is made for the first guard', async () => {
      const first = await guardAfterReading('picture', { leaseFirst: true })
      expect(first).toBe((await refusesNewer()) ? 'HOLDFAST_OLD_PICTURE' : 'guarded')
      expect(await guardAfterReading('picture', { leaseFirst: true })).toBe('guarded')
    })

    it('is refused, if the lease was granted after it, and says what to do', async () => {
      expect(await guardAfterReading('late picture', { leaseFirst: false })).toBe('HOLDFAST_OLD_PICTURE')
    })
  })

  describe('a guarded transaction and its neighbours', () => {
    const pools: Pool[] = []
    afterAll(() => Promise.all(pools.map((own) => own.end())))

    neighbourCases(() => ({
      open: () => {
        const own = createPool({ uri: server.url, connectionLimit: 4, flags })
        pools.push(own)
        return mysqlStore(own)
      },
      guard: async (lease) => {
        const tx = await pool.getConnection()
        await tx.beginTransaction()
        await mysqlStore(pool).guard(lease, tx)
        return async () => {
          await tx.commit()
          tx.release()
        }
      },
    }))
  })

  describe('what waits at the server', () => {
    const pools: Pool[] = []
    afterAll(() => Promise.all(pools.map((own) => own.end())))

    const begin = async (work: (tx: PoolConnection) => Promise<unknown>): Promise<() => Promise<void>> => {
      const tx = await pool.getConnection()
      await tx.beginTransaction()
      await work(tx)
      return async () => {
        await tx.commit()
        tx.release()
      }
    }
    const count = async (sql: string): Promise<number> => {
      const [rows] = await pool.query(sql)
      return Number((rows as { n: number }[])[0]?.n)
    }
    const openPool = (): Pool => {
      // Rows in another form than is usual: what is left at the server is found all the same.
      const own = createPool({ uri: server.url, connectionLimit: 10, flags, rowsAsArray: true })
      pools.push(own)
      return own
    }
    waitingCases(() => ({
      open: () => mysqlStore(openPool()),
      openMany: (many) => {
        const own = openPool()
        return Array.from({ length: many }, () => mysqlStore(own))
      },
      guard: (lease) => begin((tx) => mysqlStore(pool).guard(lease, tx)),
      lockRow: (name) =>
        begin((tx) => tx.query('SELECT * FROM holdfast_locks WHERE name = ? FOR UPDATE', [name])),
      connections: async () => ({
        all: await count('SELECT COUNT(*) AS n FROM information_schema.processlist'),
        waiting: await count(
          `SELECT COUNT(*) AS n FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
        ),
      }),
    }))
  })

  describe('a table of the user', () => {
    userTableCases(() => ({
      optimistic: (options) => optimistic(pool, options),
      fenced: (options) => fenced(pool, options),
      sql: async (text) => (await pool.query(text))[0] as Record<string, unknown>[],
    }))

    it('is not waited for without end while somebody keeps a row of it locked, and that is told', async () => {
      const own = createPool({ uri: server.url, connectionLimit: 1, flags })
      await own.query('SET innodb_lock_wait_timeout = 3')
      await pool.query('REPLACE INTO bonus VALUES (99, 1, 0)')
      const locked = await pool.getConnection()
      await locked.beginTransaction()
      await locked.query('SELECT * FROM bonus WHERE id = 99 FOR UPDATE')
      let attempts = 0
      const update = optimistic(own, { table: 'bonus', key: 'id' }).update(99, () => {
        attempts += 1
        return { left_count: 0 }
      })
      await expect(update).rejects.toMatchObject({ code: 'ER_LOCK_WAIT_TIMEOUT' })
      expect(attempts).toBe(2)
      await locked.rollback()
      locked.release()
      await own.end()
    })
  })

  describe('a table of the user, in a transaction', () => {
    const database = (client: Pool | PoolConnection): UserDatabase => ({
      optimistic: (options) => optimistic(client, options),
      fenced: (options) => fenced(client, options),
      sql: async (text) => (await client.query(text))[0] as Record<string, unknown>[],
    })
    userTransactionCases(() => ({
      outside: () => database(pool),
      deadlock: 'ER_LOCK_DEADLOCK',
      begin: async (isolation) => {
        const connection = await pool.getConnection()
        await connection.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`)
        await connection.beginTransaction()
        return {
          ...database(connection),
          end: async (how) => {
            await connection.query(how)
            connection.release()
          },
        }
      },
    }))

    const byText: SqlRunner = (sql, params) => pool.query(sql, params)

    it.each([
      ['a number', 0, () => pool],
      ['a bigint', 0n, () => pool],
      ['a number, through a function,', 0, () => byText],
      ['a bigint, through a function,', 0n, () => byText],
    ] as const)('takes %s for a key of letters as it is written, and changes one row', async (_, key, by) => {
      await pool.query('DROP TABLE IF EXISTS coupon')
      await pool.query('CREATE TABLE coupon (code varchar(20) PRIMARY KEY, used int, version int)')
      await pool.query(`INSERT INTO coupon VALUES ('a', 0, 0), ('b', 0, 0), ('0', 0, 0)`)
      await optimistic(by(), { table: 'coupon', key: 'code' }).update(key, () => ({ used: 1 }))
      const [rows] = await pool.query('SELECT code FROM coupon WHERE used = 1')
      expect(rows).toMatchObject([{ code: '0' }])
    })

    it.each(['pool', 'function'])('stores a number that is an object as a number, by a %s', async (by) => {
      await pool.query('DROP TABLE IF EXISTS purse')
      await pool.query(
        'CREATE TABLE purse (id int PRIMARY KEY, balance decimal(10, 2), version int, fence bigint)',
      )
      await pool.query('INSERT INTO purse VALUES (1, 100, 0, NULL)')
      // As those of decimal.js, which Prisma gives.
      const decimal = (text: string): object => ({ d: [1], toJSON: () => text, toString: () => text })
      const to = by === 'pool' ? pool : byText
      const options = { table: 'purse', key: 'id' }
      await optimistic(to, options).update(1, () => ({ balance: decimal('90.50') }))
      expect((await pool.query('SELECT balance FROM purse'))[0]).toEqual([{ balance: '90.50' }])
      expect(await fenced(to, options).update(1, 5n, { balance: decimal('80.25') })).toBe('written')
      expect((await pool.query('SELECT balance FROM purse'))[0]).toEqual([{ balance: '80.25' }])
    })

    it('stores an object as its JSON, and lets none name other columns, whoever writes the text', async () => {
      await pool.query('DROP TABLE IF EXISTS profile')
      await pool.query('CREATE TABLE profile (id int PRIMARY KEY, words text, balance int, version int)')
      await pool.query('INSERT INTO profile VALUES (1, NULL, 0, 0), (2, NULL, 0, 0)')
      const given: unknown[] = []
      const seen: SqlRunner = (sql, params) => {
        given.push(...params)
        return byText(sql, params)
      }
      const words = { version: 0, balance: 1_000_000 }
      await optimistic(pool, { table: 'profile', key: 'id' }).update(1, () => ({ words }))
      await optimistic(seen, { table: 'profile', key: 'id' }).update(2, () => ({ words }))
      const [rows] = await pool.query('SELECT words, balance FROM profile')
      const row = { words: JSON.stringify(words), balance: 0 }
      expect(rows).toEqual([row, row])
      expect(given.filter((value) => typeof value === 'object')).toEqual([])
    })
  })
})
