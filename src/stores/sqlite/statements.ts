import { DEFAULT_TABLE, tableName } from '../sql/identifiers.ts'
import { ReturningStatements } from '../sql/returning.ts'
import { rowOf } from '../sql/row.ts'
import type { Row } from '../sql/row.ts'
import { compileAll, valueOf } from '../sql/statement.ts'
import type { Statement, Value, Values } from '../sql/statement.ts'
import type { SqliteDriver, SqliteLink, SqliteValue } from './client.ts'
import { scripts } from './sql.gen.ts'

/** The machine's clock. SQLite reads it once per statement, to the millisecond. */
const NOW = `(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)`

export interface SqliteTableOptions {
  /** Default `holdfast_locks`. */
  readonly table?: string
}

export interface SqliteStatementOptions extends SqliteTableOptions {
  /** Another clock, for tests. */
  readonly now?: string
}

export class SqliteStatements extends ReturningStatements<SqliteLink> {
  readonly schemaText: string
  private readonly readSql: Statement

  constructor({ table = DEFAULT_TABLE, now = NOW }: SqliteStatementOptions) {
    // Both drivers take numbered parameters for named ones, and want an object.
    const flavour = { table: tableName({ table }, '"'), now, placeholder: () => '?', repeats: true }
    const sql = compileAll(scripts, flavour)

    super(sql, table, (link, { text, params }, values) => link.run(text, valuesOf(params, values)))
    this.schemaText = sql.schema.text
    this.readSql = sql.read
  }

  override createSchema(link: SqliteLink): Promise<void> {
    return link.exec(this.schemaText)
  }

  /** The row of a name, inside a transaction that nobody else can write beside. */
  guard(driver: SqliteDriver, name: string): Row | undefined {
    const [cells] = driver.send(this.readSql.text, valuesOf(this.readSql.params, { names: [name] }))
    return cells && rowOf(cells, String)
  }
}

function valuesOf(params: readonly string[], values: Values): SqliteValue[] {
  return params.map((param) => plain(valueOf(values, param)))
}

const plain = (value: Value): SqliteValue =>
  value === null || typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)
