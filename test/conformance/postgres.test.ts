import { Pool } from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'

import { documented, vitestConformance } from 'holdfast/testkit'

import { available, postgres } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { PostgresSqlStore } from '../../src/stores/postgres/store.ts'
import { closing, OpenSockets } from '../../src/stores/sql/open.ts'
import { leftoversOf } from '../stores/sql/leftovers.ts'
import { everything } from './abilities.ts'

describe.skipIf(!available('postgres'))('PostgreSQL', () => {
  let server: Server
  let admin: Pool

  beforeAll(async () => {
    server = await postgres()
    admin = poolAt(server)
  })
  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  /** A store that closes its pool, as one from a URL does. */
  const open = (at: Address, listen: boolean): PostgresSqlStore => {
    const pool = poolAt(at)
    return new PostgresSqlStore(pool, { listen, close: closing(() => pool.end(), new OpenSockets()) })
  }

  const target = {
    leftovers: async () => {
      const { rows } = await admin.query('SELECT name, claim, queue FROM holdfast_locks')
      return leftoversOf(rows)
    },
    module: () => ({
      url: new URL('../../dist/stores/postgres/open.js', import.meta.url).href,
      export: 'openPostgresStore',
      args: server.url,
    }),
    restart: () => server.restart(),
  }

  vitestConformance(
    { describe, it },
    {
      ...target,
      name: 'with LISTEN',
      abilities: everything,
      createStore: () => open(server, true),
      proxied: { upstream: () => server, createStore: (at) => open(at, true) },
      ...documented['postgres'],
    },
  )
  vitestConformance(
    { describe, it },
    {
      ...target,
      name: 'polling',
      abilities: { ...everything, wakeups: 'poll' },
      createStore: () => open(server, false),
      proxied: { upstream: () => server, createStore: (at) => open(at, false) },
    },
  )
})

interface Address {
  readonly host: string
  readonly port: number
}

function poolAt({ host, port }: Address): Pool {
  const pool = new Pool({
    host,
    port,
    user: 'postgres',
    database: 'postgres',
    max: 5,
    connectionTimeoutMillis: 2000,
  })
  // A pool speaks up when an idle connection breaks; here that is the point.
  pool.on('error', () => {})
  return pool
}
