import type { AtOnce } from '../sql/client.ts'
import { DEFAULT_TABLE, tableName } from '../sql/identifiers.ts'
import { ReturningStatements } from '../sql/returning.ts'
import { afterSign, rowOf } from '../sql/row.ts'
import type { Row } from '../sql/row.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { compileAll } from '../sql/statement.ts'
import type { Statement } from '../sql/statement.ts'
import { SqliteAtOnce } from './at-once.ts'
import type { AtOnceSql } from './at-once.ts'
import { cellsOf, valuesOf } from './client.ts'
import type { SqliteDatabase, SqliteDriver, SqliteLink } from './client.ts'
import { scripts } from './sql.gen.ts'

/** The machine's clock. SQLite reads it once per statement, to the millisecond. */
const NOW = `(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)`

export interface SqliteTableOptions {
  /** Default `holdfast_locks`. */
  readonly table?: string | undefined
}

export interface SqliteStatementOptions extends SqliteTableOptions {
  /** Another clock, for tests. */
  readonly now?: string
}

export class SqliteStatements extends ReturningStatements<SqliteLink> {
  readonly schemaText: string
  private readonly guardSql: Statement
  private readonly atOnceSql: AtOnceSql

  constructor({ table = DEFAULT_TABLE, now = NOW }: SqliteStatementOptions) {
    // Both drivers take numbered parameters for named ones, and want an object.
    const flavour = { table: tableName({ table }, '"'), now, placeholder: () => '?', repeats: true }
    const sql = compileAll(scripts, flavour)

    // One connection writes at a time: whatever a claim guards is over when a step is written.
    super({ ...sql, seize: sql.swap }, table, {
      rows: (connection, { text, params }, values) => connection.run(text, valuesOf(params, values)),
      changed: (connection, { text, params }, values) => connection.change(text, valuesOf(params, values)),
    })
    this.schemaText = sql.schema.text
    this.guardSql = sql.guard
    this.atOnceSql = { takeAt: sql.takeAt, free: sql.free }
  }

  override createSchema(connection: SqliteLink): Promise<void> {
    return connection.exec(this.schemaText)
  }

  atOnce(driver: SqliteDriver, clock?: () => number): AtOnce {
    return new SqliteAtOnce(driver, this.atOnceSql, this.known, clock)
  }

  async guardBy(run: SqlRunner, names: readonly string[]): Promise<Row[]> {
    const { text, params } = this.guardSql
    const rows = await runRows(run, text, valuesOf(params, { names }))
    return cellsOf(rows).map((cells) => rowOf(cells, afterSign))
  }

  /** The rows of names, inside a transaction on this database. */
  guard(database: SqliteDatabase, names: readonly string[]): Row[] {
    const { text, params } = this.guardSql
    const rows = database.prepare(text).all(...valuesOf(params, { names }))
    return cellsOf(rows).map((cells) => rowOf(cells, afterSign))
  }
}
