import { createHash } from 'node:crypto'
import type { ClaimRef, ClaimRequest } from '../../core/contract.ts'
import { codeOf, DatabaseError } from '../sql/failure.ts'
import type { Effects, Sign, Statements, Taken } from '../sql/client.ts'
import { DEFAULT_TABLE, tableName } from '../sql/identifiers.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { rowOf } from '../sql/row.ts'
import type { Cells, Columns, Row } from '../sql/row.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { onOtherServer } from '../sql/same-transaction.ts'
import { schemaVersion } from '../sql/schema.ts'
import { compile, compileAll, inline, valueOf } from '../sql/statement.ts'
import type { Statement, Value, Values } from '../sql/statement.ts'
import type { MysqlConnection, MysqlLink, MysqlResult } from './client.ts'
import { INSIDE, send } from './client.ts'
import type { Parameter } from './core-pool.ts'
import { KnownNames } from '../sql/known-names.ts'
import { scripts } from './sql.gen.ts'

/** Microseconds since 1970 when the statement began. Free of the session's time zone, unlike UNIX_TIMESTAMP(NOW(6)). */
const NOW = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

// Drivers make a Buffer of bytes, some ORMs a plain array of them.
const text = (cell: unknown): string =>
  cell instanceof Uint8Array ? Buffer.from(cell).toString('utf8') : String(cell)

/** Letters that mean themselves between quotes, whatever the `sql_mode` and the character set. None at all may mean NULL. */
const PLAIN = /^[A-Za-z0-9 _.:/@-]+$/

/** Those that are the same byte in every character set that a connection can have; @ is not in Swedish ones. */
const COMMON = /^[A-Za-z0-9 _.:/-]+$/

/**
 * Values go into the statement as numbers, plain letters or hexadecimal bytes, which mean the same under every
 * `sql_mode`, character set and driver setting. Escaped strings do not: with NO_BACKSLASH_ESCAPES a driver's escaping is
 * an injection.
 */
function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return value.map((one) => literal(one)).join(', ')
  return PLAIN.test(value) ? `_binary'${value}'` : hex(value)
}

const hex = (value: string): string => `X'${Buffer.from(value, 'utf8').toString('hex')}'`

/** Without a sign that somebody in between may take for a parameter: a name like `train:7` looks like one to some. */
const bare = (value: Value): string =>
  typeof value === 'string'
    ? hex(value)
    : Array.isArray(value)
      ? value.map((one: string) => hex(one)).join(', ')
      : literal(value)

/** Sends a statement inside of the user's transaction, and gives its rows. */
async function inside(
  tx: MysqlConnection | SqlRunner,
  statement: Statement,
  values: Values,
): Promise<readonly Cells[]> {
  if (typeof tx !== 'function') return (await send(tx, inline(statement, values, literal), INSIDE)).rows
  const rows = await runRows(tx, inline(statement, values, bare), [])
  return rows.map((row) => Object.values(row))
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

/**
 * How many names a statement looks for. From some ten thousands on the servers look through the whole table instead, whatever
 * index they are told to use (`optimizer_max_sel_arg_weight`, `range_optimizer_max_mem_size`), and lock all of it.
 */
const BITE = 1000

function* bites<T>(list: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < list.length; from += BITE) yield list.slice(from, from + BITE)
}

/**
 * What the column takes. A longer one would be refused, and not only to its own claim: it can wait in the queue, and then whoever
 * releases the lock has to write it to the column.
 */
const OWNER_CHARACTERS = 255

function ownerThatFits(owner: string | null): string | null {
  if (owner === null || owner.length <= OWNER_CHARACTERS) return owner
  return Array.from(owner.slice(0, 2 * OWNER_CHARACTERS))
    .slice(0, OWNER_CHARACTERS)
    .join('')
}

/** The row that is locked while a transaction is guarded by a claim on the name. Nobody ever holds it. */
const GUARD = '\u0000guard:'
const isGuard = (name: string): boolean => name.startsWith(GUARD)
const guardOf = (name: string): string =>
  `${GUARD}${createHash('sha256').update(name).digest('hex').slice(0, 40)}`

const OLD_PICTURE = new DatabaseError(
  'The transaction has read before, and sees the locks as they were then: make guard the first thing in it',
  'HOLDFAST_OLD_PICTURE',
)

/** MariaDB from 11.6 on does not lock what is newer than what the transaction has seen, and has undone it by now. */
function asOldPicture(error: unknown): never {
  if (codeOf(error) !== 'ER_CHECKREAD') throw error
  throw Object.assign(new DatabaseError(OLD_PICTURE.message, OLD_PICTURE.code), { cause: error })
}

/**
 * What is locked in the transaction has the version that everybody sees: it keeps them from changing it. One that has another
 * is on another server, whose lock would keep nobody here from anything. What the transaction has made itself nobody sees.
 */
function requireSameServer(locked: readonly Cells[], rows: readonly Row[] = []): void {
  for (const [name, version] of locked) {
    const row = rows.find((one) => one.name === text(name))
    if (row === undefined || row.version === Number(version)) continue
    throw onOtherServer()
  }
}

/**
 * Reads rows on another connection, if there is one to be had. Not in the transaction: if that is SERIALIZABLE, all that
 * it reads is locked until its end, and nobody could renew anything on those names.
 */
export type Elsewhere = (names: readonly string[]) => Promise<readonly Row[] | undefined>

/** What a transaction is to be guarded by. */
export interface Guards {
  readonly names: readonly string[]
  /** Whether a picture of the rows is from after the claims on them were granted. */
  areSeen(rows: readonly Row[]): boolean
}

export interface MysqlStatementOptions extends TableOptions {
  /** The one that connections begin with, as far as is known. */
  readonly database?: string | undefined
  /** Another clock, for tests. */
  readonly now?: string
}

interface Compiled {
  readonly sql: Readonly<Record<keyof typeof scripts, Statement>>
  readonly prepared: Readonly<Record<'take' | 'free', Statement>>
}

function compiled({ now = NOW, ...table }: MysqlStatementOptions, found?: string): Compiled {
  const flavour = { table: tableName(table, '`', found), now, placeholder: null }
  const marked = { ...flavour, placeholder: () => '?', repeats: true }
  return {
    sql: compileAll(scripts, flavour),
    prepared: { take: compile(scripts.take.sql, marked), free: compile(scripts.free.sql, marked) },
  }
}

export class MysqlStatements implements Statements<MysqlLink> {
  private sql: Readonly<Record<keyof typeof scripts, Statement>>
  /** The two that are most of all. */
  private prepared: Readonly<Record<'take' | 'free', Statement>>
  private readonly options: MysqlStatementOptions
  /** Where the table is, if nobody has said it. */
  private found: string | undefined
  private readonly known = new KnownNames()
  /** Names that have a row to guard them. */
  private readonly guards = new KnownNames()
  /** From MySQL 8.0 and MariaDB 10.6 on. */
  private skipsLocked = true
  /** Whether a connection may refuse to lock what is newer than what it has seen: see isolation.sql. */
  private mayRefuseNewer: boolean | undefined

  constructor(options: MysqlStatementOptions) {
    this.options = options
    this.found = options.database
    ;({ sql: this.sql, prepared: this.prepared } = compiled(options, this.found))
  }

  async take(connection: MysqlLink, request: ClaimRequest): Promise<Taken> {
    const { name, id, weight, capacity, tokens, ttl } = request
    const owner = ownerThatFits(request.owner)
    const values = { name, id, owner, weight, capacity, tokens, ttl: ttl * 1000 }
    if (!this.known.has(name)) {
      const token = await this.insert(connection, values)
      this.known.add(name)
      if (token > 0) return { token: BigInt(token), created: true }
    }
    const { insertId } = await this.send(connection, 'take', values)
    if (insertId > 0) return { token: BigInt(insertId) }
    const [row] = await this.read(connection, [name])
    // Somebody tidied up: the next claim starts with an INSERT again.
    if (row === undefined) this.known.delete(name)
    return row === undefined ? {} : { row }
  }

  /** The first token, or 0 when the name has a row already. */
  private async insert(connection: MysqlLink, values: Values): Promise<number> {
    try {
      return (await this.change(connection, 'create', values)).insertId
    } catch (error) {
      if (codeOf(error) === 'ER_DUP_ENTRY') return 0
      throw error
    }
  }

  async free(connection: MysqlLink, { name, id }: ClaimRef): Promise<boolean> {
    return (await this.send(connection, 'free', { name, id })).changed > 0
  }

  async keep(
    connection: MysqlLink,
    claims: readonly ClaimRef[],
    ttl: number,
  ): Promise<ReadonlyMap<string, boolean>> {
    const kept = new Map<string, boolean>()
    for (const some of bites(claims)) {
      for (const [id, contended] of await this.keepSome(connection, some, ttl)) kept.set(id, contended)
    }
    return kept
  }

  private async keepSome(
    connection: MysqlLink,
    claims: readonly ClaimRef[],
    ttl: number,
  ): Promise<ReadonlyMap<string, boolean>> {
    const names = claims.map(({ name }) => name)
    const ids = claims.map(({ id }) => id)
    const { insertId } = await this.change(connection, 'keep', { names, ids, ttl: ttl * 1000 })
    if (insertId === 0) return new Map()
    const { rows } = await this.run(connection, 'kept', { names, ids, expires: insertId + ttl * 1000 })
    return new Map(rows.map(([claim, waiting]) => [text(claim), Number(waiting) > 0]))
  }

  async read(connection: MysqlLink, names: readonly string[]): Promise<readonly Row[]> {
    const found: Row[] = []
    for (const some of bites(names)) {
      const { rows } = await this.run(connection, 'read', { names: some })
      found.push(...rows.map((cells) => rowOf(cells, text)))
    }
    return found
  }

  async swap(
    connection: MysqlLink,
    { name, version }: Row,
    next: Columns,
    { ended }: Effects,
  ): Promise<boolean> {
    const values = { ...next, owner: ownerThatFits(next.owner), name, version }
    if (ended.length > 0) return this.seize(connection, guardOf(name), values)
    return (await this.change(connection, 'swap', values)).changed > 0
  }

  async swapQueues(connection: MysqlLink, signs: readonly Sign[]): Promise<number> {
    const names = signs.map(({ row }) => row.name)
    const versions = signs.map(({ row }) => String(row.version))
    const queues = signs.map(({ next }) => next.queue)
    return (await this.change(connection, 'swapQueues', { names, versions, queues })).changed
  }

  async create(connection: MysqlLink, name: string): Promise<void> {
    await this.change(connection, 'touch', { name })
  }

  async list(connection: MysqlLink, prefix: string, cursor: string, limit: number): Promise<readonly Row[]> {
    const { rows } = await this.run(connection, 'list', { prefix, cursor, limit })
    return rows.map((cells) => rowOf(cells, text))
  }

  async page(connection: MysqlLink, cursor: string, limit: number): Promise<readonly Row[]> {
    const { rows } = await this.run(connection, 'page', { cursor, limit })
    return rows.map((cells) => rowOf(cells, text))
  }

  async drop(connection: MysqlLink, names: readonly string[], idle: number): Promise<number> {
    const locks = names.filter((name) => !isGuard(name))
    const removed = await this.delete(connection, locks, idle)
    // Nothing is guarded by a name that is gone. One that came again meanwhile keeps its row.
    const left = removed === locks.length ? [] : (await this.read(connection, locks)).map(({ name }) => name)
    const guards = locks.filter((name) => !left.includes(name)).map(guardOf)
    const there = guards.length === 0 ? [] : await this.read(connection, guards)
    await this.delete(
      connection,
      there.map(({ name }) => name),
      idle,
    )
    return removed
  }

  private async delete(connection: MysqlLink, names: readonly string[], idle: number): Promise<number> {
    for (const name of names) this.known.delete(name)
    if (names.length === 0) return 0
    try {
      return (await this.change(connection, 'drop', { names, idle: Math.round(idle * 1000) })).changed
    } catch (error) {
      if (names.length === 1 || codeOf(error) !== 'ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE') throw error
    }
    // With `sql_safe_updates` a list is refused, though it is of keys.
    let removed = 0
    for (const name of names) removed += await this.delete(connection, [name], idle)
    return removed
  }

  /** Also finds out where the table is, once. */
  async schemaVersion(connection: MysqlLink): Promise<number | undefined> {
    const { table = DEFAULT_TABLE, schema = this.found ?? null } = this.options
    const { rows } = await this.run(connection, 'schemaVersion', { schema, table })
    const [[database, comment] = [null, null]] = rows
    if (schema === null && database !== null) {
      this.found ??= text(database)
      ;({ sql: this.sql, prepared: this.prepared } = compiled(this.options, this.found))
    }
    return comment === null ? undefined : schemaVersion(text(comment))
  }

  /** Ten processes may do this at once: the server lets one create the table, and the others find it. */
  async createSchema(connection: MysqlLink): Promise<void> {
    await this.change(connection, 'schema', {})
  }

  knowGuards(names: readonly string[]): boolean {
    return names.every((name) => this.guards.has(name))
  }

  /** Makes the rows that guard the names. */
  async makeGuards(connection: MysqlLink, names: readonly string[]): Promise<undefined> {
    this.mayRefuseNewer ??= (await this.run(connection, 'isolationSetting', {})).rows.length > 0
    const there = await this.read(connection, names.map(guardOf))
    const known = new Set(there.map(({ name }) => name))
    for (const name of names) {
      if (!known.has(guardOf(name))) await this.create(connection, guardOf(name))
      this.guards.add(name)
    }
  }

  /**
   * The rows of names, whose claims nobody else can end from before they are read until the transaction ends. Undefined
   * when there is nothing yet that could be locked for that.
   */
  async guard(
    tx: MysqlConnection | SqlRunner,
    wanted: Guards,
    elsewhere: Elsewhere,
  ): Promise<readonly Row[] | undefined> {
    const { names } = wanted
    const guards = names.map(guardOf)
    const locked = await inside(tx, this.sql.guard, { guards }).catch(asOldPicture)
    if (locked.length < names.length) {
      for (const name of names) this.guards.delete(name)
      return undefined
    }
    const [rows, seen] = await Promise.all([elsewhere([...names, ...guards]), this.seenInside(tx, guards)])
    requireSameServer(locked, rows)
    // What was locked is the newest; what is read here may be what the transaction saw when it first read anything.
    const isNewest =
      seen === null ||
      locked.every(
        ([name, version]) => seen.find((row) => row.name === text(name))?.version === Number(version),
      )
    if (isNewest) return rows ?? this.readInside(tx, names)
    // An earlier guard has read there. That is not SERIALIZABLE, where all that is read is the newest: nothing is locked by this.
    if (rows === undefined || !wanted.areSeen(await this.readInside(tx, names))) throw OLD_PICTURE
    return rows
  }

  /**
   * Null: this transaction could not have locked anything that is newer than what it sees. To read there would be its first look,
   * beside which a row that is made for its next guard is newer.
   */
  private async seenInside(tx: MysqlConnection | SqlRunner, names: readonly string[]): Promise<Row[] | null> {
    const [refuses] = this.mayRefuseNewer === true ? await inside(tx, this.sql.isolation, {}) : []
    return text(refuses?.[0]) === '1' ? null : this.readInside(tx, names)
  }

  private async readInside(tx: MysqlConnection | SqlRunner, names: readonly string[]): Promise<Row[]> {
    const rows = await inside(tx, this.sql.read, { names })
    return rows.map((cells) => rowOf(cells, text))
  }

  /** The same for names that were never guarded before: others who guard them wait for this transaction. */
  async guardNew(
    tx: MysqlConnection | SqlRunner,
    wanted: Guards,
    elsewhere: Elsewhere,
  ): Promise<readonly Row[]> {
    for (const name of wanted.names) {
      const values = { name: guardOf(name) }
      if (typeof tx === 'function') await tx(inline(this.sql.touch, values, bare), [])
      else await inside(tx, this.sql.touch, values)
    }
    const rows = await this.guard(tx, wanted, elsewhere)
    if (rows === undefined) throw OLD_PICTURE
    return rows
  }

  /** False, without waiting, while a transaction is guarded there. */
  private async seize(connection: MysqlLink, guard: string, values: Values): Promise<boolean> {
    if (!(await this.isFree(connection, guard))) return false
    return (await this.change(connection, 'seize', { ...values, guard })).changed > 0
  }

  private async isFree(connection: MysqlLink, guard: string): Promise<boolean> {
    try {
      if (this.skipsLocked && (await this.run(connection, 'guardFree', { guard })).rows.length > 0)
        return true
    } catch (error) {
      if (codeOf(error) !== 'ER_PARSE_ERROR') throw error
      // A server from before that: the statement itself waits.
      this.skipsLocked = false
    }
    const [row] = await this.read(connection, [guard])
    if (row === undefined) await this.create(connection, guard)
    return row === undefined || !this.skipsLocked
  }

  get schemaText(): string {
    return this.sql.schema.text
  }

  private send(connection: MysqlLink, key: 'take' | 'free', values: Values): Promise<MysqlResult> {
    const statement = this.prepared[key]
    const parameters = parametersOf(statement, values)
    if (parameters === undefined) return this.change(connection, key, values)
    const text = (): string => inline(this.sql[key], values, literal)
    return connection.send({ sql: statement.text, values: parameters, text })
  }

  private change(connection: MysqlLink, key: keyof typeof scripts, values: Values): Promise<MysqlResult> {
    return connection.change(inline(this.sql[key], values, literal))
  }

  private run(connection: MysqlLink, key: keyof typeof scripts, values: Values): Promise<MysqlResult> {
    return connection.run(inline(this.sql[key], values, literal))
  }
}
