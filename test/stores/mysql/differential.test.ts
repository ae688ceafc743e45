import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, mariadb } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { MysqlSqlStore } from '../../../src/stores/mysql/store.ts'
import { behavesLikeTheRule } from '../sql/differential.ts'
import type { Subject } from '../sql/differential.ts'

describe.skipIf(!available('mariadb'))('MariaDB beside the rule in core', () => {
  let server: Server
  let pool: Pool
  let subject: Subject

  beforeAll(async () => {
    server = await mariadb()
    pool = createPool({ uri: server.url, connectionLimit: 4 })
    await pool.query('CREATE TABLE test_clock (us bigint NOT NULL)')
    await pool.query('INSERT INTO test_clock VALUES (0)')
    const internals = { slack: 1, now: '(SELECT us FROM test_clock)' }
    subject = {
      store: new MysqlSqlStore(pool, internals),
      async setClock(micros) {
        await pool.query('UPDATE test_clock SET us = ?', [micros])
      },
    }
  })

  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  it.each([
    ['mutex', 1],
    ['semaphore', 3],
    ['read-write lock', 2 ** 31 - 1],
  ])('answers like it for a %s', async (_, capacity) => {
    await expect(behavesLikeTheRule(subject, capacity, 60)).resolves.toBeUndefined()
  })
})
