import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, it } from 'vitest'

import { vitestConformance } from 'holdfast/testkit'

import { available, mariadb } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { mysqlStore } from '../../src/stores/mysql/index.ts'
import { leftoversOf } from '../stores/sql/leftovers.ts'

describe.skipIf(!available('mariadb')).each(['REPEATABLE-READ', 'READ-COMMITTED'])('MariaDB, %s', (isolation) => {
  let server: Server
  const pools: Pool[] = []

  beforeAll(async () => {
    server = await mariadb({ args: [`--transaction-isolation=${isolation}`] })
  })
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await server.stop()
  })

  function pool(host = server.host, port = server.port): Pool {
    const made = createPool({ host, port, user: 'root', database: 'test', connectionLimit: 5, connectTimeout: 2000 })
    pools.push(made)
    return made
  }

  vitestConformance(
    { describe, it },
    {
      name: 'pool',
      createStore: () => mysqlStore(pool()),
      leftovers: async () => {
        const [rows] = await pool().query('SELECT name, claim, queue FROM holdfast_locks')
        return leftoversOf(rows as unknown[])
      },
      module: () => ({
        url: new URL('../../dist/stores/mysql/open.js', import.meta.url).href,
        export: 'openMysqlStore',
        args: server.url,
      }),
      restart: () => server.restart(),
      proxied: {
        upstream: () => server,
        createStore: ({ host, port }) => mysqlStore(pool(host, port)),
      },
    },
  )
})
