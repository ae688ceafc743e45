import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { SqliteSqlStore } from '../../../src/stores/sqlite/store.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/index.ts'
import { behavesLikeTheRule } from '../sql/differential.ts'
import type { Subject } from '../sql/differential.ts'
import { hasSqlite, openDatabase } from './databases.ts'

describe.skipIf(!hasSqlite())('SQLite beside the rule in core', () => {
  let subject: Subject
  let database: SqliteDatabase & { close(): void }

  beforeAll(() => {
    database = openDatabase(':memory:')
    database.exec('CREATE TABLE test_clock (us INTEGER NOT NULL); INSERT INTO test_clock VALUES (0)')
    let clock = 0
    subject = {
      store: new SqliteSqlStore(database, {
        slack: 1,
        now: '(SELECT us FROM test_clock)',
        clock: () => clock,
      }),
      setClock(micros) {
        clock = micros
        return Promise.resolve(void database.exec(`UPDATE test_clock SET us = ${micros}`))
      },
    }
  })
  afterAll(() => database.close())

  it.each([
    ['mutex', 1],
    ['semaphore', 3],
    ['read-write lock', 2 ** 31 - 1],
  ])('answers like it for a %s', async (_, capacity) => {
    await expect(behavesLikeTheRule(subject, capacity, 100)).resolves.toBeUndefined()
  })
})
