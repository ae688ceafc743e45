import { Pool } from 'pg'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe } from 'vitest'

import { available, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { fenced, optimistic, postgresStore } from '../../../src/stores/postgres/index.ts'
import { guardMatrix } from '../sql/guard-matrix.ts'
import { guardedCases } from '../sql/guarded-cases.ts'
import { guardsAtOnceCases } from '../sql/guards-at-once-cases.ts'
import { neighbourCases } from '../sql/neighbour-cases.ts'
import { waitingCases } from '../sql/waiting-cases.ts'
import { userTableCases, userTransactionCases } from '../sql/user-table-cases.ts'
import type { UserDatabase } from '../sql/user-table-cases.ts'

describe.skipIf(!available('postgres'))('PostgreSQL', () => {
  let server: Server
  let pool: Pool

  beforeAll(async () => {
    server = await postgres()
    pool = new Pool({ connectionString: server.url, max: 10 })
    // Connections that are being closed may hear that the server is, too.
    pool.on('error', () => {})
    await pool.query('CREATE TABLE entries (line text NOT NULL)')
    await pool.query(
      'CREATE TABLE bonus (id int PRIMARY KEY, left_count int NOT NULL, version bigint NOT NULL)',
    )
    await pool.query('CREATE TABLE seat (id int PRIMARY KEY, owner text, fence bigint)')
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  describe('a transaction that is guarded by a lease', () => {
    guardedCases<PoolClient>(() => ({
      open: () => postgresStore(pool),
      write: (tx, line) => tx.query('INSERT INTO entries VALUES ($1)', [line]),
      lines: async () =>
        (await pool.query<{ line: string }>('SELECT line FROM entries')).rows.map(({ line }) => line),
    }))
  })

  describe('a transaction, whatever happens to the lease that guards it', () => {
    guardMatrix(() => {
      const store = postgresStore(pool)
      return {
        store,
        guarded: (lease, line, inside) =>
          store.guarded(lease, async (tx) => {
            await tx.query('INSERT INTO entries VALUES ($1)', [line])
            await inside()
          }),
        lines: async () =>
          (await pool.query<{ line: string }>('SELECT line FROM entries')).rows.map(({ line }) => line),
      }
    }, true)
  })

  describe('a transaction of one’s own that several leases guard', () => {
    guardsAtOnceCases(async () => {
      const store = postgresStore(pool)
      const tx = await pool.connect()
      return {
        store,
        guard: (lease) => store.guard(lease, tx),
        newRunner: () => (sql, params) => tx.query(sql, params),
        begin: () => tx.query('BEGIN'),
        rollback: () => tx.query('ROLLBACK'),
        end: () => Promise.resolve(tx.release()),
      }
    })
  })

  describe('a guarded transaction and its neighbours', () => {
    const pools: Pool[] = []
    afterAll(() => Promise.all(pools.map((own) => own.end())))

    neighbourCases(() => ({
      open: () => {
        const own = new Pool({ connectionString: server.url, max: 4 })
        own.on('error', () => {})
        pools.push(own)
        return postgresStore(own)
      },
      guard: async (lease) => {
        const tx = await pool.connect()
        await tx.query('BEGIN')
        await postgresStore(pool).guard(lease, tx)
        return async () => {
          await tx.query('COMMIT')
          tx.release()
        }
      },
    }))
  })

  describe('what waits at the server', () => {
    const pools: Pool[] = []
    afterAll(() => Promise.all(pools.map((own) => own.end())))

    const begin = async (work: (tx: PoolClient) => Promise<unknown>): Promise<() => Promise<void>> => {
      const tx = await pool.connect()
      await tx.query('BEGIN')
      await work(tx)
      return async () => {
        await tx.query('COMMIT')
        tx.release()
      }
    }
    const count = async (where: string): Promise<number> => {
      const text = `SELECT count(*) AS n FROM pg_stat_activity WHERE backend_type = 'client backend' AND ${where}`
      return Number((await pool.query<{ n: string }>(text)).rows[0]?.n)
    }
    const openPool = (): Pool => {
      const own = new Pool({ connectionString: server.url, max: 10 })
      own.on('error', () => {})
      pools.push(own)
      return own
    }
    waitingCases(() => ({
      open: () => postgresStore(openPool()),
      openMany: (many) => {
        const own = openPool()
        return Array.from({ length: many }, () => postgresStore(own))
      },
      guard: (lease) => begin((tx) => postgresStore(pool).guard(lease, tx)),
      lockRow: (name) =>
        begin((tx) => tx.query('SELECT * FROM holdfast_locks WHERE name = $1 FOR UPDATE', [name])),
      connections: async () => ({
        all: await count('true'),
        waiting: await count(`wait_event_type = 'Lock'`),
      }),
    }))
  })

  describe('a table of the user', () => {
    userTableCases(() => ({
      optimistic: (options) => optimistic(pool, options),
      fenced: (options) => fenced(pool, options),
      sql: async (text) => (await pool.query<Record<string, unknown>>(text)).rows,
    }))
  })

  describe('a table of the user, in a transaction', () => {
    const database = (client: Pool | PoolClient): UserDatabase => ({
      optimistic: (options) => optimistic(client, options),
      fenced: (options) => fenced(client, options),
      sql: async (text) => (await client.query<Record<string, unknown>>(text)).rows,
    })
    userTransactionCases(() => ({
      outside: () => database(pool),
      deadlock: '40P01',
      begin: async (isolation) => {
        const client = await pool.connect()
        await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
        return {
          ...database(client),
          end: async (how) => {
            await client.query(how)
            client.release()
          },
        }
      },
    }))
  })
})
