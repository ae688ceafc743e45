// Kysely on the same drivers as everybody else.
import { openMysql, openPostgres, openSqlite } from './databases.mjs'

export async function mysqlDialect(url) {
  const { MysqlDialect } = await import('kysely')
  const { pool, close } = await openMysql(url)
  return { dialect: new MysqlDialect({ pool }), close }
}

export async function postgresDialect(url) {
  const { PostgresDialect } = await import('kysely')
  const { pool, close } = await openPostgres(url)
  return { dialect: new PostgresDialect({ pool }), close }
}

export async function sqliteDialect(url) {
  const { SqliteDialect } = await import('kysely')
  const { database, close } = await openSqlite(url)
  return { dialect: new SqliteDialect({ database: asBetterSqlite(database) }), close }
}

/** Kysely knows better-sqlite3, whose statements say whether they give rows and take their values as a list. */
function asBetterSqlite(database) {
  return {
    close: () => {},
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        reader: /^\s*(select|with|pragma)|\breturning\b/i.test(sql),
        all: (values) => statement.all(...values),
        run: (values) => statement.run(...values),
        iterate: (values) => statement.iterate(...values),
      }
    },
  }
}
