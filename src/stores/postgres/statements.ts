import { createHash } from 'node:crypto'
import { codeOf } from '../sql/causes.ts'
import { DEFAULT_TABLE, tableName } from '../sql/identifiers.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { ReturningStatements } from '../sql/returning.ts'
import { afterSign, rowOf } from '../sql/row.ts'
import type { Row } from '../sql/row.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
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

const digest = (text: string): string =>
  `holdfast_${createHash('sha1').update(text).digest('hex').slice(0, 16)}`

export interface PostgresStatementOptions extends TableOptions {
  /** Have the server parse each statement once for each connection. */
  readonly prepare?: boolean
  /** Another clock, for tests. */
  readonly now?: string
}

export class PostgresStatements extends ReturningStatements<PostgresLink> {
  readonly schemaText: string
  private readonly guardSql: Statement

  constructor({ table = DEFAULT_TABLE, schema, now = NOW, prepare = true }: PostgresStatementOptions) {
    const name = tableName({ table, ...(schema && { schema }) }, '"')
    const flavour = { table: name, now, placeholder: (index: number) => `$${index}` }
    const sql = compileAll(scripts, flavour)
    const names = new Map(Object.values(sql).map(({ text }) => [text, digest(text)]))
    let prepared = prepare
    let generation = 0
    const run = async (
      link: PostgresLink,
      { text, params }: Statement,
      values: Values,
    ): Promise<PostgresResult> => {
      const list = params.map((key) => valueOf(values, key))
      if (!prepared) return link.run(text, list)
      const current = generation
      try {
        return await link.run(text, list, `${names.get(text)}_${current}`)
      } catch (error) {
        const code = codeOf(error)
        // Nothing was done: the server looks at the statement before it runs it.
        if (code === CHANGED) generation = Math.max(generation, current + 1)
        else if (FORGOTTEN.has(code)) prepared = false
        else throw error
        return link.run(text, list)
      }
    }
    super(sql, name, {
      rows: async (link, statement, values) => (await run(link, statement, values)).rows,
      changed: async (link, statement, values) => (await run(link, statement, values)).changed,
    })
    this.schemaText = sql.schema.text
    this.guardSql = sql.guard
  }

  /** One at a time, and the others find it done: CREATE … IF NOT EXISTS alone fails when two do it at once. */
  override async createSchema(link: PostgresLink): Promise<void> {
    const text = `BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${this.schemaText}; COMMIT`
    // What fails leaves the connection in a failed transaction, and it is the user's: before it is sent again, too.
    await link.script(text, 'ROLLBACK')
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
