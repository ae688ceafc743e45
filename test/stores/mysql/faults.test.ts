import { createConnection, createPool } from 'mysql2/promise'
import type { Connection, Pool, PoolConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe } from 'vitest'

import { available, clockShim, mariadb } from '../../../scripts/services.mjs'
import type { ClockShim, Server } from '../../../scripts/services.mjs'
import { mysqlStore } from '../../../src/stores/mysql/index.ts'
import { faultCases } from '../sql/fault-cases.ts'

describe.skipIf(!available('mariadb') || !available('cc'))('MariaDB that is hurt', () => {
  let server: Server
  let clock: ClockShim
  const pools: Pool[] = []

  /** A connection of its own, for nothing of it may be killed along with the others. */
  const admin = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await createConnection(server.url)
    try {
      return await work(connection)
    } finally {
      await connection.end()
    }
  }

  beforeAll(async () => {
    clock = await clockShim()
    server = await mariadb({ env: clock.env })
    await admin((connection) => connection.query('CREATE TABLE entries (line varchar(100) NOT NULL)'))
  })
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end().catch(() => {})))
    await server.stop()
    clock.dispose()
  })

  faultCases<PoolConnection>(() => ({
    server,
    clock,
    module: {
      url: new URL('../../../dist/stores/mysql/open.js', import.meta.url).href,
      export: 'openMysqlStore',
      args: server.url,
    },
    open: ({ connections = 5, port = server.port } = {}) => {
      const pool = createPool({
        host: server.host,
        port,
        user: 'root',
        database: 'test',
        connectionLimit: connections,
      })
      pools.push(pool)
      return { store: mysqlStore(pool), ping: () => pool.query('SELECT 1') }
    },
    killConnections: () =>
      admin(async (connection) => {
        const [rows] = await connection.query(
          `SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'`,
        )
        for (const { id } of rows as { id: number }[]) {
          await connection.query(`KILL ${id}`).catch(() => {})
        }
      }),
    deadlock: (first, second, locked) =>
      admin(async (connection) => {
        await connection.beginTransaction()
        // Who has changed the least gives way: that must not be this one.
        for (let row = 0; row < 50; row++)
          await connection.query('INSERT INTO entries VALUES (?)', [`row ${row}`])
        await connection.query('SELECT 1 FROM holdfast_locks WHERE name = ? FOR UPDATE', [first])
        await locked()
        await connection.query('SELECT 1 FROM holdfast_locks WHERE name = ? FOR UPDATE', [second])
        await connection.rollback()
        const [rows] = await connection.query('SHOW ENGINE INNODB STATUS')
        if (!JSON.stringify(rows).includes('LATEST DETECTED DEADLOCK'))
          throw new Error('there was no deadlock')
      }),
    dropTable: async () =>
      void (await admin((connection) => connection.query('DROP TABLE IF EXISTS holdfast_locks'))),
    write: (tx, line) => tx.query('INSERT INTO entries VALUES (?)', [line]),
    lines: () =>
      admin(async (connection) => {
        const [rows] = await connection.query('SELECT line FROM entries')
        return (rows as { line: string }[]).map(({ line }) => line)
      }),
  }))
})
