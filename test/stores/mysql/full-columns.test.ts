import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { fenced, optimistic } from '../../../src/stores/mysql/index.ts'

/** Types, and the number after which a column of that type begins to repeat itself where the server is not strict. */
const FULL = [
  ['TINYINT', '127'],
  ['TINYINT UNSIGNED', '255'],
  ['SMALLINT', '32767'],
  ['MEDIUMINT', '8388607'],
  ['INT', '2147483647'],
  ['INT UNSIGNED', '4294967295'],
  ['DECIMAL(4,0)', '9999'],
] as const

describe.skipIf(!available('mariadb')).each([`''`, `'STRICT_ALL_TABLES'`])(
  'columns of MariaDB that are full, sql_mode %s',
  (mode) => {
    let server: Server
    let pool: Pool

    beforeAll(async () => {
      server = await mariadb()
      pool = createPool({ uri: server.url, connectionLimit: 1 })
      await pool.query(`SET sql_mode = ${mode}`)
    })
    afterAll(async () => {
      await pool.end()
      await server.stop()
    })

    const count = async (type: string, version: string): Promise<void> => {
      await pool.query('DROP TABLE IF EXISTS counted')
      await pool.query(`CREATE TABLE counted (id int PRIMARY KEY, v int, version ${type})`)
      await pool.query(`INSERT INTO counted VALUES (1, 0, ${version})`)
    }
    const update = (v: number): Promise<unknown> =>
      optimistic(pool, { table: 'counted', key: 'id' }).update(1, () => ({ v }))
    const value = async (): Promise<unknown> =>
      ((await pool.query('SELECT v FROM counted'))[0] as { v: number }[])[0]?.v

    it.each(FULL)(
      'a version of %s: counts up to %s, and is not changed after that',
      async (type, largest) => {
        await count(type, String(BigInt(largest) - 1n))
        expect(await update(1)).toMatchObject({ kind: 'updated' })
        await expect(update(2)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'version' })
        expect(await value()).toBe(1)
      },
    )

    it.each(FULL)('a version of BIGINT goes on where one of %s ends', async (_, largest) => {
      await count('BIGINT', largest)
      expect(await update(1)).toMatchObject({ kind: 'updated' })
    })

    it('a version that the driver rounds is told, for it would fit to several rows', async () => {
      await count('BIGINT', '9007199254740993')
      await expect(update(1)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'version' })
      expect(await value()).toBe(0)
      const exact = createPool({ uri: server.url, supportBigNumbers: true, bigNumberStrings: true })
      const table = optimistic(exact, { table: 'counted', key: 'id' })
      expect(await table.update(1, () => ({ v: 3 }))).toMatchObject({ kind: 'updated' })
      await exact.end()
    })

    it.each(['INT', 'INT UNSIGNED', 'DECIMAL(10,0)'])(
      'a fence of %s, which holds no token, is told',
      async (type) => {
        await pool.query('DROP TABLE IF EXISTS fenced')
        await pool.query(`CREATE TABLE fenced (id int PRIMARY KEY, v int, fence ${type})`)
        await pool.query('INSERT INTO fenced VALUES (1, 0, NULL)')
        const result = fenced(pool, { table: 'fenced', key: 'id' }).update(1, 1_794_780_646_347_432n, {
          v: 1,
        })
        await expect(result).rejects.toMatchObject({
          code: mode === `''` ? 'INVALID_ARGUMENT' : 'ER_WARN_DATA_OUT_OF_RANGE',
        })
      },
    )

    it('a fence that holds tokens is good, whatever else the server has made fit', async () => {
      await pool.query('DROP TABLE IF EXISTS fenced')
      await pool.query('CREATE TABLE fenced (id int PRIMARY KEY, v tinyint, fence bigint)')
      await pool.query('INSERT INTO fenced VALUES (1, 0, NULL)')
      const table = fenced(pool, { table: 'fenced', key: 'id' })
      const write = table.update(1, 1_794_780_646_347_432n, { v: 1000 }).catch(() => 'refused')
      expect(await write).toBe(mode === `''` ? 'written' : 'refused')
      expect(await table.update(1, 1_794_780_646_347_432n, { v: 1 })).toBe('written')
      expect(await table.update(1, 1n, { v: 1 })).toBe('stale')
    })
  },
)
