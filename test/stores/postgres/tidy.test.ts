import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { PostgresSqlStore } from '../../../src/stores/postgres/store.ts'
import { tidyCases } from '../sql/tidy-cases.ts'

describe.skipIf(!available('postgres'))('a table of locks in PostgreSQL', () => {
  let server: Server
  let pool: Pool
  let tables = 0

  beforeAll(async () => {
    server = await postgres()
    pool = new Pool({ connectionString: server.url, max: 4 })
    pool.on('error', () => {})
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
        new PostgresSqlStore(pool, { table, slack: 1, now: '(SELECT us FROM test_clock)', ...options }),
      setClock: async (micros) => void (await pool.query('UPDATE test_clock SET us = $1', [micros])),
      rows: async () => {
        const { rows } = await pool.query<{ name: string; version: string }>(
          `SELECT name, version FROM ${table}`,
        )
        return rows.map(({ name, version }) => ({ name, version: Number(version) }))
      },
    })
  })

  it('keeps a name while a transaction is guarded there', async () => {
    const store = postgresStore(pool, { keepIdle: 0 })
    const holdfast = new Holdfast(store)
    const lease = await holdfast.mutex('guarded', { ttl: 3000, renew: false }).acquire()
    const rows = async (): Promise<number> =>
      Number((await pool.query<{ n: string }>('SELECT COUNT(*) AS n FROM holdfast_locks')).rows[0]?.n)
    const tx = await pool.connect()
    await tx.query('BEGIN')
    await store.guard(lease, tx)
    // Silent from here on: nothing is withdrawn, which would be remembered for a minute.
    await holdfast.close({ release: false })
    const patient = { timeout: 20_000 }
    await expect.poll(() => store.inspect('guarded', 5000), patient).toMatchObject({ holders: [] })
    await store.tidy()
    expect(await rows()).toBe(1)
    await tx.query('COMMIT')
    tx.release()
    await expect.poll(async () => (await store.tidy()).removed, patient).toBe(1)
    expect(await rows()).toBe(0)
  })
})
