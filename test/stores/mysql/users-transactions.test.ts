import { createPoolCluster as createCallbackCluster } from 'mysql2'
import { createConnection, createPool, createPoolCluster } from 'mysql2/promise'
import type { Connection, Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { Store } from '../../../src/core/contract.ts'
import { mysqlStore } from '../../../src/stores/mysql/index.ts'
import { request } from '../sql/short-run.ts'

describe.skipIf(!available('mariadb'))('a MySQL store and somebody else’s transaction', () => {
  let server: Server
  let admin: Pool
  let names = 0

  beforeAll(async () => {
    server = await mariadb()
    admin = createPool({ uri: server.url })
    await admin.query('CREATE TABLE entries (line varchar(100) NOT NULL)')
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  const holdersOf = async (name: string): Promise<number> => {
    const [rows] = await admin.query('SELECT 1 FROM holdfast_locks WHERE name = ? AND claim IS NOT NULL', [
      name,
    ])
    return (rows as unknown[]).length
  }

  it.each(['BEGIN', 'START TRANSACTION WITH CONSISTENT SNAPSHOT', 'SET autocommit = 0'])(
    'says nothing of a lock inside of what a connection was given back to the pool with: %s',
    async (begin) => {
      const pool = createPool({ uri: server.url, connectionLimit: 1 })
      const store = mysqlStore(pool)
      // The table is there, or made: which would end the transaction.
      expect(await store.inspect('ready', 5000)).toMatchObject({ holders: [] })
      for (const known of [false, true]) {
        const name = `leaked ${(names += 1)}`
        if (known) await store.release(await held(store, name), undefined, 5000)
        const leaked = await pool.getConnection()
        await leaked.query(begin)
        leaked.release()
        const answer = await store.claim(request(name), 5000)
        expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'HOLDFAST_AUTOCOMMIT' } })
        expect(await holdersOf(name)).toBe(0)
        await pool.query('SET autocommit = 1')
        await pool.query('ROLLBACK')
      }
      await pool.end()
    },
  )

  it.each(['BEGIN', 'SET autocommit = 0'])(
    'refuses one connection after %s, and leaves that alone',
    async (begin) => {
      const connection: Connection = await createConnection(server.url)
      const store = mysqlStore(connection)
      const name = `single ${(names += 1)}`
      await store.release(await held(store, name), undefined, 5000)
      await connection.query(begin)
      await connection.query('INSERT INTO entries VALUES (?)', [name])
      expect(await store.claim(request(name), 5000)).toMatchObject({ kind: 'unknown', retryable: false })
      await connection.query('COMMIT')
      const [rows] = await admin.query('SELECT 1 FROM entries WHERE line = ?', [name])
      expect(rows).toHaveLength(1)
      expect(await holdersOf(name)).toBe(0)
      await connection.end()
    },
  )

  it('refuses a pool of another driver before it is used', () => {
    const mariadbPool = { getConnection: () => {}, query: () => {}, batch: () => {}, importFile: () => {} }
    expect(() => mysqlStore(mariadbPool as never)).toThrow(/driver mariadb/)
  })

  it('refuses a cluster of pools, whose servers would each give out locks of their own', () => {
    for (const cluster of [createPoolCluster(), createCallbackCluster()]) {
      expect(() => mysqlStore(cluster as never)).toThrow(/not a cluster/)
      expect(() => mysqlStore(cluster.of('*') as never)).toThrow(/not a cluster/)
    }
  })
})

async function held(store: Store, name: string): Promise<ReturnType<typeof request>> {
  const claim = request(name)
  expect(await store.claim(claim, 5000)).toMatchObject({ kind: 'held' })
  return claim
}
