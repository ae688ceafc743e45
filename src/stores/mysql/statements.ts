import type { Notice } from '../../core/claim-queue.ts'
import type { ClaimRef, ClaimRequest } from '../../core/contract.ts'
import { codeOf } from '../sql/causes.ts'
import type { Statements, Taken } from '../sql/client.ts'
import { DEFAULT_TABLE, tableName } from '../sql/identifiers.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { rowOf } from '../sql/row.ts'
import type { Columns, Row } from '../sql/row.ts'
import { schemaVersion } from '../sql/schema.ts'
import { compile, compileAll, inline, valueOf } from '../sql/statement.ts'
import type { Statement, Value, Values } from '../sql/statement.ts'
import type { MysqlConnection, MysqlLink, MysqlResult } from './client.ts'
import { send } from './client.ts'
import type { Parameter } from './core-pool.ts'
import { KnownNames } from '../sql/known-names.ts'
import { scripts } from './sql.gen.ts'

/** Microseconds since 1970 when the statement began. Free of the session's time zone, unlike UNIX_TIMESTAMP(NOW(6)). */
const NOW = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

const text = (cell: unknown): string => (Buffer.isBuffer(cell) ? cell.toString('utf8') : String(cell))

/** Letters that mean themselves between quotes, whatever the `sql_mode` and the character set. */
const PLAIN = /^[A-Za-z0-9 _.:/@-]*$/

/** Those that are the same byte in every character set that a connection can have; @ is not in Swedish ones. */
const COMMON = /^[A-Za-z0-9 _.:/-]*$/

/**
 * Values go into the statement as numbers, plain letters or hexadecimal bytes, which mean the same under every
 * `sql_mode`, character set and driver setting. Escaped strings do not: with NO_BACKSLASH_ESCAPES a driver's escaping is
 * an injection.
 */
function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return value.map((one) => literal(one)).join(', ')
  return PLAIN.test(value) ? `_binary'${value}'` : `X'${Buffer.from(value, 'utf8').toString('hex')}'`
}

/** The values of a prepared statement, which the server takes for texts in the connection's character set; or not. */
function parametersOf({ params }: Statement, values: Values): Parameter[] | undefined {
  const parameters: Parameter[] = []
  for (const param of params) {
    const value = valueOf(values, param)
    if (typeof value !== 'number' && !(typeof value === 'string' && COMMON.test(value))) return undefined
    parameters.push(value)
  }
  return parameters
}

export interface MysqlStatementOptions extends TableOptions {
  /** Another clock, for tests. */
  readonly now?: string
}

export class MysqlStatements implements Statements<MysqlLink> {
  private readonly sql: Readonly<Record<keyof typeof scripts, Statement>>
  /** The two that are most of all. */
  private readonly prepared: Readonly<Record<'take' | 'free', Statement>>
  private readonly table: string
  private readonly schema: string | null
  private readonly known = new KnownNames()

  constructor({ table = DEFAULT_TABLE, schema, now = NOW }: MysqlStatementOptions) {
    const flavour = { table: tableName({ table, ...(schema && { schema }) }, '`'), now, placeholder: null }
    this.sql = compileAll(scripts, flavour)
    const marked = { ...flavour, placeholder: () => '?', repeats: true }
    this.prepared = { take: compile(scripts.take.sql, marked), free: compile(scripts.free.sql, marked) }
    this.table = table
    this.schema = schema ?? null
  }

  async take(link: MysqlLink, request: ClaimRequest): Promise<Taken> {
    const { name, id, owner, weight, capacity, tokens, ttl } = request
    const values = { name, id, owner, weight, capacity, tokens, ttl: ttl * 1000 }
    if (!this.known.has(name)) {
      const token = await this.insert(link, values)
      this.known.add(name)
      if (token > 0) return { token: BigInt(token) }
    }
    const { insertId } = await this.send(link, 'take', values)
    if (insertId > 0) return { token: BigInt(insertId) }
    const [row] = await this.read(link, [name])
    // Somebody tidied up: the next claim starts with an INSERT again.
    if (row === undefined) this.known.delete(name)
    return row === undefined ? {} : { row }
  }

  /** The first token, or 0 when the name has a row already. */
  private async insert(link: MysqlLink, values: Values): Promise<number> {
    try {
      return (await this.change(link, 'create', values)).insertId
    } catch (error) {
      if (codeOf(error) === 'ER_DUP_ENTRY') return 0
      throw error
    }
  }

  async free(link: MysqlLink, { name, id }: ClaimRef): Promise<boolean> {
    return (await this.send(link, 'free', { name, id })).changed > 0
  }

  async keep(
    link: MysqlLink,
    claims: readonly ClaimRef[],
    ttl: number,
  ): Promise<ReadonlyMap<string, boolean>> {
    const names = claims.map(({ name }) => name)
    const ids = claims.map(({ id }) => id)
    const { insertId } = await this.change(link, 'keep', { names, ids, ttl: ttl * 1000 })
    if (insertId === 0) return new Map()
    const { rows } = await this.run(link, 'kept', { names, ids, expires: insertId + ttl * 1000 })
    return new Map(rows.map(([claim, waiting]) => [text(claim), Number(waiting) > 0]))
  }

  async read(link: MysqlLink, names: readonly string[]): Promise<readonly Row[]> {
    const { rows } = await this.run(link, 'read', { names })
    return rows.map((cells) => rowOf(cells, text))
  }

  async swap(link: MysqlLink, row: Row, next: Columns, _notices: readonly Notice[]): Promise<boolean> {
    const { changed } = await this.change(link, 'swap', { ...next, name: row.name, version: row.version })
    return changed > 0
  }

  async create(link: MysqlLink, name: string): Promise<void> {
    await this.change(link, 'touch', { name })
  }

  async list(link: MysqlLink, prefix: string, cursor: string, limit: number): Promise<readonly Row[]> {
    const { rows } = await this.run(link, 'list', { prefix, cursor, limit })
    return rows.map((cells) => rowOf(cells, text))
  }

  async schemaVersion(link: MysqlLink): Promise<number | undefined> {
    const { schema, table } = this
    const [row] = (await this.run(link, 'schemaVersion', { schema, table })).rows
    return row && schemaVersion(text(row[0]))
  }

  /** Ten processes may do this at once: the server lets one create the table, and the others find it. */
  async createSchema(link: MysqlLink): Promise<void> {
    await this.change(link, 'schema', {})
  }

  /** The row of a name, share-locked until the transaction ends. */
  async guard(connection: MysqlConnection, name: string): Promise<Row | undefined> {
    const [cells] = (await send(connection, inline(this.sql.guard, { names: [name] }, literal))).rows
    return cells && rowOf(cells, text)
  }

  get schemaText(): string {
    return this.sql.schema.text
  }

  private send(link: MysqlLink, key: 'take' | 'free', values: Values): Promise<MysqlResult> {
    const statement = this.prepared[key]
    const parameters = parametersOf(statement, values)
    if (parameters === undefined) return this.change(link, key, values)
    const text = (): string => inline(this.sql[key], values, literal)
    return link.send({ sql: statement.text, values: parameters, text })
  }

  private change(link: MysqlLink, key: keyof typeof scripts, values: Values): Promise<MysqlResult> {
    return link.change(inline(this.sql[key], values, literal))
  }

  private run(link: MysqlLink, key: keyof typeof scripts, values: Values): Promise<MysqlResult> {
    return link.run(inline(this.sql[key], values, literal))
  }
}
