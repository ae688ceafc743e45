import { createHash } from 'node:crypto'
import { codeOf } from '../sql/failure.ts'
import type { Effects } from '../sql/client.ts'
import { tableName } from '../sql/identifiers.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { ReturningStatements } from '../sql/returning.ts'
import { afterSign, rowOf } from '../sql/row.ts'
import type { Columns, Row } from '../sql/row.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { schemaVersion } from '../sql/schema.ts'
import { compileAll, valueOf } from '../sql/statement.ts'
import type { Statement, Values } from '../sql/statement.ts'
import { send } from './client.ts'
import { wordOf } from './exchange.ts'
import type { PostgresClient, PostgresLink, PostgresResult } from './client.ts'
import { scripts } from './sql.gen.ts'

/** Not now(), which stands still in a transaction. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

/** Any number will do, as long as nobody else takes it for something else: the bytes of "holdfast". */
const MIGRATION_LOCK = '7525758567302165364'

/** A pooler gave the connection to somebody else meanwhile: the statement is unknown, or known already. */
const FORGOTTEN = new Set(['26000', '42P05'])

/** A column's type was changed since the connection prepared the statement: it refuses that name for ever. */
const CHANGED = '0A000'

/** There is no room for messages, nobody's on this server. Nothing of the statement was done. */
const QUEUE_FULL = '54000'

const digest = (text: string): string =>
  `holdfast_${createHash('sha1').update(text).digest('hex').slice(0, 16)}`

export interface PostgresStatementOptions extends TableOptions {
  /** Have the server parse each statement once for each connection. */
  readonly prepare?: boolean
  /** Another clock, for tests. */
  readonly now?: string
}

const compiled = (
  { now = NOW, ...table }: PostgresStatementOptions,
  found?: string,
): Readonly<Record<keyof typeof scripts, Statement>> =>
  compileAll(scripts, {
    table: tableName(table, '"', found),
    now,
    placeholder: (index: number) => `$${index}`,
  })

export class PostgresStatements extends ReturningStatements<PostgresLink> {
  private readonly options: PostgresStatementOptions
  private guardSql: Statement
  private readonly thereSql: Statement
  /** Where the table is, if that had to be found out. */
  private found: string | undefined

  constructor(options: PostgresStatementOptions) {
    const sql = compiled(options)
    const names = new Map<string, string>()
    const nameOf = (text: string): string => {
      let name = names.get(text)
      if (name === undefined) names.set(text, (name = digest(text)))
      return name
    }
    let prepared = options.prepare ?? true
    let generation = 0
    const run = async (
      connection: PostgresLink,
      { text, params }: Statement,
      values: Values,
    ): Promise<PostgresResult> => {
      const list = params.map((key) => valueOf(values, key))
      if (!prepared) return connection.run(text, list)
      const current = generation
      try {
        return await connection.run(text, list, `${nameOf(text)}_${current}`)
      } catch (error) {
        const code = codeOf(error)
        // Nothing was done: the server looks at the statement before it runs it.
        if (code === CHANGED) generation = Math.max(generation, current + 1)
        else if (FORGOTTEN.has(code)) prepared = false
        else throw error
        return connection.run(text, list)
      }
    }
    super(sql, '', {
      rows: async (connection, statement, values) => (await run(connection, statement, values)).rows,
      changed: async (connection, statement, values) => (await run(connection, statement, values)).changed,
    })
    this.options = options
    this.guardSql = sql.guard
    this.thereSql = sql.guardThere
  }

  get schemaText(): string {
    return this.sql.schema.text
  }

  /** Also finds out where the table is, once. */
  override async schemaVersion(connection: PostgresLink): Promise<number | undefined> {
    const { options } = this
    const table = tableName(options, '"', this.found)
    const rows = await this.run.rows(connection, this.sql.schemaVersion, { table })
    const [[schema, comment] = [null, null]] = rows as readonly (readonly (string | null)[])[]
    if (options.schema === undefined && typeof schema === 'string') {
      const sql = compiled(options, (this.found ??= schema))
      this.sql = sql
      this.guardSql = sql.guard
    }
    return typeof comment === 'string' ? schemaVersion(comment) : undefined
  }

  override async swap(connection: PostgresLink, row: Row, next: Columns, effects: Effects): Promise<boolean> {
    try {
      return await super.swap(connection, row, next, effects)
    } catch (error) {
      if (codeOf(error) !== QUEUE_FULL || effects.notices.length === 0) throw error
      // A listener of somebody else's does not read. A message that is lost costs a delay, a step that is not done the lock.
      return super.swap(connection, row, next, { ...effects, notices: [] })
    }
  }

  /** One at a time, and the others find it done: CREATE … IF NOT EXISTS alone fails when two do it at once. */
  override async createSchema(connection: PostgresLink): Promise<void> {
    const text = `BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${this.schemaText}; COMMIT`
    // What fails leaves the connection in a failed transaction, and it is the user's: before it is sent again, too.
    await connection.script(text, 'ROLLBACK')
  }

  /** Whether claims guard a transaction on the server that this connection leads to. True also where that cannot be told. */
  async guardsThere(connection: PostgresLink, ids: readonly string[]): Promise<boolean> {
    const [row] = await this.run.rows(connection, this.thereSql, { ids })
    return row === undefined || Number(row[0]) === 1
  }

  /** The rows of names, with the claims locked against their end until the transaction ends. */
  async guard(
    client: PostgresClient | SqlRunner,
    names: readonly string[],
    ids: readonly string[],
  ): Promise<Row[]> {
    const { text, params } = this.guardSql
    const lists: Values = { names: wordOf(names), ids: wordOf(ids) }
    const values = params.map((key) => valueOf(lists, key))
    const rows =
      typeof client === 'function'
        ? (await runRows(client, text, values)).map((row) => Object.values(row))
        : (await send(client, { text, values })).rows
    return rows.map((cells) => rowOf(cells, afterSign))
  }
}
