// The drivers of the databases, with every statement counted on its way out.
import { countRequests } from './requests.mjs'

const counted = new Set()

/** The method of the class that has it, once, however many connections there are. */
function countOnce(object, method) {
  let owner = object
  while (owner !== null && !Object.hasOwn(owner, method)) owner = Object.getPrototypeOf(owner)
  if (owner === null || counted.has(owner)) return
  counted.add(owner)
  countRequests(owner, method)
}

/** A pool of mysql2 with callbacks; `promise()` gives the other kind. */
export async function openMysql(uri, connectionLimit = 10) {
  const { createPool } = await import('mysql2')
  const pool = createPool({ uri, connectionLimit })
  const connection = await new Promise((resolve, reject) =>
    pool.getConnection((error, lent) => (error ? reject(error) : resolve(lent))),
  )
  // Below `query` and `execute`, which a driver's other faces call or go around.
  countOnce(connection, 'addCommand')
  connection.release()
  return { pool, close: () => pool.promise().end() }
}

export async function openPostgres(connectionString, max = 10) {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString, max })
  pool.on('error', () => {})
  const client = await pool.connect()
  countOnce(client, 'query')
  client.release()
  return { pool, close: () => pool.end() }
}

/** As the store's own opener sets it: readers and the writer do not wait for each other, nor a commit for the disk. */
export async function openSqlite(url) {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(url.replace('sqlite:', ''))
  database.exec('PRAGMA busy_timeout = 5000')
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('PRAGMA synchronous = NORMAL')
  const statement = database.prepare('SELECT 1')
  for (const method of ['all', 'run', 'get']) countOnceEach(statement, method)
  return { database, close: () => database.close() }
}

/** All three belong to one class, so that the class does not tell whether a method is counted already. */
function countOnceEach(statement, method) {
  const owner = Object.getPrototypeOf(statement)
  if (owner[method].name !== 'counted') countRequests(owner, method)
}
