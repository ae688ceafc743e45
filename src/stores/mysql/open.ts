import { checkOptions, said } from '../../core/arguments.ts'
import { absent, driver } from '../../transport/driver.ts'
import type { Driver } from '../../transport/driver.ts'
import { closing, notInstalled, OpenSockets, parseUrl, reached } from '../sql/open.ts'
import type * as Mysql2 from 'mysql2/promise'
import type { MysqlPool } from './client.ts'
import { MYSQL_OPTIONS, MysqlSqlStore } from './store.ts'
import type { MysqlStore, MysqlStoreOptions } from './store.ts'

/** Opens a pool of its own, and fails at once if the server cannot be used. Closing the store closes the pool. */
export async function openMysqlStore(
  url: string,
  options: MysqlStoreOptions = {},
): Promise<MysqlStore<MysqlPool>> {
  checkOptions(options, MYSQL_OPTIONS, 'table')
  const { uri, options: inUrl } = parseUrl(url)
  const mysql2 = await driver(MYSQL2)
  if (mysql2 === undefined) throw notInstalled('mysql', 'mysql2')
  const pool = mysql2.createPool({ uri, connectionLimit: 10, connectTimeout: 5000 })
  const sockets = new OpenSockets()
  pool.on('connection', (connection: object) => {
    if ('stream' in connection) sockets.add(connection.stream)
  })
  const store = new MysqlSqlStore(pool, {
    ...inUrl,
    ...said(options),
    close: closing(() => pool.end(), sockets),
  })
  return (await reached(store, url)) as unknown as MysqlStore<MysqlPool>
}

const MYSQL2: Driver<typeof Mysql2> = {
  module: 'mysql2/promise',
  has: 'createPool',
  oldest: [1, 5],
  load: async () => {
    try {
      return await import('mysql2/promise')
    } catch (error) {
      return absent(error, 'mysql2')
    }
  },
}
