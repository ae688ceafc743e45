import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { mysqlStore } from '../../../src/stores/mysql/index.ts'
import { MysqlSqlStore } from '../../../src/stores/mysql/store.ts'
import { tidyCases } from '../sql/tidy-cases.ts'

describe.skipIf(!available('mariadb'))('a table of locks in MariaDB', () => {
  let server: Server
  let pool: Pool
  let tables = 0

  beforeAll(async () => {
    server = await mariadb()
    pool = createPool({ uri: server.url, connectionLimit: 4 })
    await pool.query('CREATE TABLE test_clock (us bigint NOT NULL)')
    await pool.query('INSERT INTO test_clock VALUES (0)')
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  tidyCases(() => {
    const table = `locks_${(tables += 1)}`
    return Promise.resolve({
      open: (options) =>
        new MysqlSqlStore(pool, { table, slack: 1, now: '(SELECT us FROM test_clock)', ...options }),
      setClock: async (micros) => void (await pool.query('UPDATE test_clock SET us = ?', [micros])),
      rows: async () => {
        const [rows] = await pool.query(
          `SELECT CAST(name AS CHAR) AS name, version FROM ${table} WHERE name > ' '`,
        )
        return rows as { name: string; version: number }[]
      },
    })
  })

  it('keeps a name while a transaction is guarded there, and forgets what guards it with the name', async () => {
    const store = mysqlStore(pool, { keepIdle: 0 })
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('guarded', { ttl: 3000, renew: false }).acquire()
    const rows = async (): Promise<number> =>
      Number(((await pool.query('SELECT COUNT(*) AS n FROM holdfast_locks'))[0] as { n: number }[])[0]?.n)
    const tx = await pool.getConnection()
    await tx.beginTransaction()
    await store.guard(lease, tx)
    // Silent from here on: nothing is withdrawn, which would be remembered for a minute.
    await holdfast.close({ release: false })
    const patient = { timeout: 20_000 }
    await expect.poll(() => store.inspect('guarded', 5000), patient).toMatchObject({ holders: [] })
    await store.tidy()
    expect(await rows()).toBe(2)
    await tx.commit()
    tx.release()
    await expect.poll(async () => (await store.tidy()).removed, patient).toBe(1)
    expect(await rows()).toBe(0)
  })
})
