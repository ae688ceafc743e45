import { Pool } from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'

import { vitestConformance } from 'holdfast/testkit'

import { available, postgres } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { leftoversOf } from '../stores/sql/leftovers.ts'

describe.skipIf(!available('postgres'))('PostgreSQL', () => {
  let server: Server
  const pools: Pool[] = []

  beforeAll(async () => void (server = await postgres()))
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await server.stop()
  })

  function pool(host = server.host, port = server.port): Pool {
    const made = new Pool({ host, port, user: 'postgres', database: 'postgres', max: 5, connectionTimeoutMillis: 2000 })
    // A pool speaks up when an idle connection breaks; here that is the point.
    made.on('error', () => {})
    pools.push(made)
    return made
  }

  const target = {
    leftovers: async () => {
      const { rows } = await pool().query('SELECT name, claim, queue, expires_us FROM holdfast_locks')
      return leftoversOf(rows)
    },
    module: () => ({
      url: new URL('../../dist/stores/postgres/open.js', import.meta.url).href,
      export: 'openPostgresStore',
      args: server.url,
    }),
    restart: () => server.restart(),
    proxied: {
      upstream: () => server,
      createStore: ({ host, port }: { host: string; port: number }) => postgresStore(pool(host, port)),
    },
  }

  vitestConformance(
    { describe, it },
    { ...target, name: 'with LISTEN', createStore: () => postgresStore(pool()) },
  )
  vitestConformance(
    { describe, it },
    { ...target, name: 'polling', createStore: () => postgresStore(pool(), { listen: false }) },
  )
})
