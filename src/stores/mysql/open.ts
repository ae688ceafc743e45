import { checkOptions } from '../../core/arguments.ts'
import { checkUrl, closing, driver, reached } from '../sql/open.ts'
import type { MysqlPool } from './client.ts'
import { MYSQL_OPTIONS, MysqlSqlStore } from './store.ts'
import type { MysqlStore, MysqlStoreOptions } from './store.ts'

/** Opens a pool of its own, and fails at once if the server cannot be used. Closing the store closes the pool. */
export async function openMysqlStore(
  url: string,
  options: MysqlStoreOptions = {},
): Promise<MysqlStore<MysqlPool>> {
  checkOptions(options, MYSQL_OPTIONS, 'table')
  checkUrl(url)
  const { createPool } = await driver('mysql2', 'mysql', () => import('mysql2/promise'))
  const pool = createPool({ uri: url, connectionLimit: 10, connectTimeout: 5000 })
  const store = new MysqlSqlStore(pool, { ...options, close: closing(() => pool.end()) })
  return (await reached(store, url)) as unknown as MysqlStore<MysqlPool>
}
