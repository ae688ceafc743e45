import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { Store } from '../../../src/core/contract.ts'
import { PostgresSqlStore } from '../../../src/stores/postgres/store.ts'
import { behavesLikeTheRule } from '../sql/differential.ts'
import type { Subject } from '../sql/differential.ts'

describe.skipIf(!available('postgres'))('PostgreSQL beside the rule in core', () => {
  let server: Server
  let pool: Pool
  let subject: Subject

  beforeAll(async () => {
    server = await postgres()
    pool = new Pool({ connectionString: server.url, max: 4 })
    // Connections that are being closed may hear that the server is, too.
    pool.on('error', () => {})
    await pool.query('CREATE TABLE test_clock (us bigint NOT NULL)')
    await pool.query('INSERT INTO test_clock VALUES (0)')
    const internals = { listen: false, slack: 1, now: '(SELECT us FROM test_clock)' }
    const store: Store = new PostgresSqlStore(pool, internals)
    subject = {
      store,
      async setClock(micros) {
        await pool.query('UPDATE test_clock SET us = $1', [micros])
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
