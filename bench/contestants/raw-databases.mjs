// The limit of a lock in a table: two bare UPDATEs of one row by its primary key, each committed by itself, on one
// connection of the same driver, prepared where the driver can.
import { openMysql, openPostgres, openSqlite } from './databases.mjs'
import { sqliteNode } from './sqlite-node.mjs'

const CREATE = 'CREATE TABLE IF NOT EXISTS bench_raw (name VARCHAR(255) PRIMARY KEY, taken INT NOT NULL)'
const CONFIG = 'two UPDATEs by primary key, autocommit'

/** The row of a name is made by the first who wants it. */
function locker(insert, update) {
  return (name) => {
    let known = false
    return {
      async acquire() {
        if (!known) await insert(name)
        known = true
        await update(1, name)
      },
      release: () => update(0, name),
    }
  }
}

const entry = (store, label, open, more = {}) => ({
  id: `raw-${store}`,
  family: 'raw',
  label: `raw limit (${label})`,
  store,
  role: 'limit',
  config: CONFIG,
  open: ({ urls }) => open(urls[store]),
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const rawDatabases = [
  entry('mysql', 'mysql2', async (url) => {
    const { pool, close } = await openMysql(url, 1)
    const connection = await pool.promise().getConnection()
    await connection.query(CREATE)
    // As text, which is what the driver sends unless told otherwise.
    const lock = locker(
      (name) => connection.query(`INSERT IGNORE INTO bench_raw VALUES ('${name}', 0)`),
      (taken, name) => connection.query(`UPDATE bench_raw SET taken = ${taken} WHERE name = '${name}'`),
    )
    return {
      lock,
      async close() {
        connection.release()
        await close()
      },
    }
  }),
  entry('postgres', 'pg', async (url) => {
    const { pool, close } = await openPostgres(url, 1)
    const client = await pool.connect()
    // Two at once may both find it missing.
    await client.query(CREATE).catch(() => client.query('SELECT 1 FROM bench_raw'))
    const lock = locker(
      (name) => client.query('INSERT INTO bench_raw VALUES ($1, 0) ON CONFLICT DO NOTHING', [name]),
      (taken, name) =>
        client.query({
          name: 'raw',
          text: 'UPDATE bench_raw SET taken = $1 WHERE name = $2',
          values: [taken, name],
        }),
    )
    return {
      lock,
      async close() {
        client.release()
        await close()
      },
    }
  }),
  entry(
    'sqlite',
    'node:sqlite',
    async (url) => {
      const { database, close } = await openSqlite(url)
      database.exec(CREATE)
      const insert = database.prepare('INSERT OR IGNORE INTO bench_raw VALUES (?, 0)')
      const update = database.prepare('UPDATE bench_raw SET taken = ? WHERE name = ?')
      const lock = locker(
        (name) => insert.run(name),
        async (taken, name) => update.run(taken, name),
      )
      return { lock, close }
    },
    sqliteNode,
  ),
]
