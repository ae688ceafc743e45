import { checkOptions, said } from '../../core/arguments.ts'
import { absent, driver } from '../../transport/driver.ts'
import type { Driver } from '../../transport/driver.ts'
import { closing, notInstalled, OpenSockets, parseUrl, reached } from '../sql/open.ts'
import type * as Pg from 'pg'
import type { PostgresPool } from './client.ts'
import { POSTGRES_OPTIONS, PostgresSqlStore } from './store.ts'
import type { PostgresStore, PostgresStoreOptions } from './store.ts'

/** Opens a pool of its own, and fails at once if the server cannot be used. Closing the store closes the pool. */
export async function openPostgresStore(
  url: string,
  options: PostgresStoreOptions = {},
): Promise<PostgresStore<PostgresPool>> {
  checkOptions(options, POSTGRES_OPTIONS, 'table')
  // pg takes one without a host: `postgres://me:secret@/app?host=/cloudsql/…`, a socket.
  const { uri, options: inUrl } = parseUrl(url, url.replace('@/', '@host/'))
  const pg = await driver(PG)
  if (pg === undefined) throw notInstalled('postgres', 'pg')
  const pool = new pg.Pool({ connectionString: uri, max: 10, connectionTimeoutMillis: 5000, keepAlive: true })
  // An idle connection that breaks is replaced when it is needed; nobody else has to hear of it.
  pool.on('error', () => {})
  const sockets = new OpenSockets()
  pool.on('connect', ({ connection }: { readonly connection?: { readonly stream: unknown } }) => {
    sockets.add(connection?.stream)
  })
  const store = new PostgresSqlStore(pool, {
    ...inUrl,
    ...said(options),
    close: closing(() => pool.end(), sockets),
  })
  return (await reached(store, url)) as unknown as PostgresStore<PostgresPool>
}

const PG: Driver<typeof Pg> = {
  module: 'pg',
  has: 'Pool',
  oldest: [8, 0],
  load: async () => {
    try {
      return await import('pg')
    } catch (error) {
      return absent(error, 'pg')
    }
  },
}
