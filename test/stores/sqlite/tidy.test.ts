import { afterAll, beforeAll, describe } from 'vitest'

import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { SqliteSqlStore } from '../../../src/stores/sqlite/store.ts'
import { tidyCases } from '../sql/tidy-cases.ts'
import { hasSqlite, openDatabase } from './databases.ts'

describe.skipIf(!hasSqlite())('a table of locks in SQLite', () => {
  let database: SqliteDatabase & { close(): void }
  let tables = 0
  let clock = 0

  beforeAll(() => {
    database = openDatabase(':memory:')
    database.exec('CREATE TABLE test_clock (us INTEGER NOT NULL); INSERT INTO test_clock VALUES (0)')
  })
  afterAll(() => database.close())

  tidyCases(() => {
    const table = `locks_${(tables += 1)}`
    const now = '(SELECT us FROM test_clock)'
    return Promise.resolve({
      open: (options) =>
        new SqliteSqlStore(database, { table, slack: 1, now, clock: () => clock, ...options }),
      setClock: (micros) => {
        clock = micros
        return Promise.resolve(void database.exec(`UPDATE test_clock SET us = ${micros}`))
      },
      rows: () =>
        Promise.resolve(
          database.prepare(`SELECT name, version FROM ${table}`).all() as { name: string; version: number }[],
        ),
    })
  })
})
