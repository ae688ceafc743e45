import { createPool } from 'mysql2/promise'
import type { Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, it } from 'vitest'

import { vitestConformance } from 'holdfast/testkit'

import { available, mariadb } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { MysqlSqlStore } from '../../src/stores/mysql/store.ts'
import { closing, OpenSockets } from '../../src/stores/sql/open.ts'
import { leftoversOf } from '../stores/sql/leftovers.ts'
import { everything } from './abilities.ts'

describe.skipIf(!available('mariadb')).each(['REPEATABLE-READ', 'READ-COMMITTED'])(
  'MariaDB, %s',
  (isolation) => {
    let server: Server
    let admin: Pool

    beforeAll(async () => {
      server = await mariadb({ args: [`--transaction-isolation=${isolation}`] })
      admin = poolAt(server)
    })
    afterAll(async () => {
      await admin.end()
      await server.stop()
    })

    /** A store that closes its pool, as one from a URL does. */
    const open = (at: Address): MysqlSqlStore => {
      const pool = poolAt(at)
      return new MysqlSqlStore(pool, { close: closing(() => pool.end(), new OpenSockets()) })
    }

    vitestConformance(
      { describe, it },
      {
        name: 'a pool',
        abilities: { ...everything, wakeups: 'poll' },
        createStore: () => open(server),
        leftovers: async () => {
          const [rows] = await admin.query('SELECT name, claim, queue FROM holdfast_locks')
          return leftoversOf(rows as unknown[])
        },
        module: () => ({
          url: new URL('../../dist/stores/mysql/open.js', import.meta.url).href,
          export: 'openMysqlStore',
          args: server.url,
        }),
        restart: () => server.restart(),
        proxied: { upstream: () => server, createStore: open },
      },
    )
  },
)

interface Address {
  readonly host: string
  readonly port: number
}

function poolAt({ host, port }: Address): Pool {
  return createPool({ host, port, user: 'root', database: 'test', connectionLimit: 5, connectTimeout: 2000 })
}
