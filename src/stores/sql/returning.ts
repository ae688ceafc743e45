import { createHash } from 'node:crypto'
import type { ClaimRef, ClaimRequest, StoreEvent } from '../../core/contract.ts'
import type { Effects, Statements, Taken } from './client.ts'
import { KnownNames } from './known-names.ts'
import { rowOf } from './row.ts'
import type { Cells, Columns, Row } from './row.ts'
import { schemaVersion } from './schema.ts'
import type { Statement, Values } from './statement.ts'

type Key =
  | 'take'
  | 'free'
  | 'keep'
  | 'read'
  | 'list'
  | 'swap'
  | 'seize'
  | 'create'
  | 'touch'
  | 'page'
  | 'drop'
  | 'schema'
  | 'schemaVersion'

export type ReturningSql = Readonly<Record<Key, Statement>>

export interface Running<Connection> {
  /** What the statement returns. */
  rows(connection: Connection, statement: Statement, values: Values): Promise<readonly Cells[]>
  /** How many rows it touched: for one that returns nothing, which is cheaper by a tenth. */
  changed(connection: Connection, statement: Statement, values: Values): Promise<number>
}

/** The statements of servers whose UPDATE can tell what it did (`RETURNING`): PostgreSQL and SQLite. */
export class ReturningStatements<Connection> implements Statements<Connection> {
  protected sql: ReturningSql
  private readonly table: string
  protected readonly known: KnownNames = new KnownNames()
  protected readonly run: Running<Connection>

  constructor(sql: ReturningSql, table: string, run: Running<Connection>) {
    this.sql = sql
    this.table = table
    this.run = run
  }

  async take(connection: Connection, request: ClaimRequest): Promise<Taken> {
    const { name, id, owner, weight, capacity, tokens, ttl } = request
    const values = { name, id, owner, weight, capacity, tokens, ttl: ttl * 1000 }
    if (!this.known.has(name)) {
      const [created] = await this.run.rows(connection, this.sql.create, values)
      this.known.add(name)
      if (created !== undefined) return { ...this.granted(request, created), created: true }
    }
    const [taken] = await this.run.rows(connection, this.sql.take, values)
    if (taken !== undefined) return this.granted(request, taken)
    const [row] = await this.read(connection, [name])
    // Somebody tidied up: the next claim starts with an INSERT again.
    if (row === undefined) this.known.delete(name)
    return row === undefined ? {} : { row }
  }

  private granted({ name, tokens }: ClaimRequest, [cell]: Cells): Taken {
    const token = Number(cell)
    this.known.add(name, token + tokens - 1)
    return { token: BigInt(token) }
  }

  async free(connection: Connection, { name, id }: ClaimRef): Promise<boolean> {
    return (await this.run.changed(connection, this.sql.free, { name, id })) > 0
  }

  async keep(
    connection: Connection,
    claims: readonly ClaimRef[],
    ttl: number,
  ): Promise<ReadonlyMap<string, boolean>> {
    const names = claims.map(({ name }) => name)
    const ids = claims.map(({ id }) => id)
    const rows = await this.run.rows(connection, this.sql.keep, { names, ids, ttl: ttl * 1000 })
    return new Map(rows.map(([claim, waiting]) => [String(claim), Number(waiting) > 0]))
  }

  async read(connection: Connection, names: readonly string[]): Promise<readonly Row[]> {
    const rows = await this.run.rows(connection, this.sql.read, { names })
    return rows.map((cells) => rowOf(cells, String))
  }

  async swap(connection: Connection, row: Row, next: Columns, { notices, ended }: Effects): Promise<boolean> {
    const told = await this.run.rows(connection, ended.length === 0 ? this.sql.swap : this.sql.seize, {
      ...next,
      ended,
      name: row.name,
      version: row.version,
      channels: notices.map(({ session }) => channelOf(session)),
      messages: notices.map(({ event }) => messageOf(event)),
    })
    return told.length > 0
  }

  async create(connection: Connection, name: string): Promise<void> {
    await this.run.rows(connection, this.sql.touch, { name })
  }

  async list(connection: Connection, prefix: string, cursor: string, limit: number): Promise<readonly Row[]> {
    const rows = await this.run.rows(connection, this.sql.list, { prefix, cursor, limit })
    return rows.map((cells) => rowOf(cells, String))
  }

  async page(connection: Connection, cursor: string, limit: number): Promise<readonly Row[]> {
    const rows = await this.run.rows(connection, this.sql.page, { cursor, limit })
    return rows.map((cells) => rowOf(cells, String))
  }

  drop(connection: Connection, names: readonly string[], idle: number): Promise<number> {
    for (const name of names) this.known.delete(name)
    return this.run.changed(connection, this.sql.drop, { names, idle: Math.round(idle * 1000) })
  }

  async schemaVersion(connection: Connection): Promise<number | undefined> {
    const [row] = await this.run.rows(connection, this.sql.schemaVersion, { table: this.table })
    return row && schemaVersion(String(row[0]))
  }

  async createSchema(connection: Connection): Promise<void> {
    await this.run.rows(connection, this.sql.schema, {})
  }
}

/** The channel on which a session is told: its name, or a digest where that would be too long for an identifier. */
export function channelOf(session: string): string {
  const known = /^[\w-]{1,48}$/.test(session)
  return `holdfast_${known ? session : createHash('sha256').update(session).digest('base64url')}`
}

export function messageOf(event: StoreEvent): string {
  return JSON.stringify(event, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

export function eventOf(message: string): StoreEvent {
  const event = JSON.parse(message) as StoreEvent
  return event.kind === 'granted' ? { ...event, token: BigInt(event.token) } : event
}
