import { InvalidArgumentError } from '../../core/errors.ts'
import { codeOf } from '../sql/causes.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Call, Driver } from '../sql/client.ts'
import type { Cells } from '../sql/row.ts'
import { valueOf } from '../sql/statement.ts'
import type { Value, Values } from '../sql/statement.ts'
import { insisting } from '../sql/turns.ts'

/** What holdfast needs of a database of node:sqlite or better-sqlite3. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

export interface SqliteStatement {
  all(...values: SqliteValue[]): unknown[]
  run(...values: SqliteValue[]): { readonly changes: number | bigint }
}

export type SqliteValue = string | number | null

/** A database that several processes write to. Every statement runs to its end before the next line of JavaScript. */
export interface SqliteLink {
  run(sql: string, values: readonly SqliteValue[]): Promise<readonly Cells[]>
  /** How many rows were changed. */
  change(sql: string, values: readonly SqliteValue[]): Promise<number>
  /** What gives nothing back. */
  exec(sql: string): Promise<void>
}

// SQLITE_BUSY, SQLITE_LOCKED and what they are extended to: another process writes just now.
const BUSY = new Set([5, 6])

export class SqliteDriver implements Driver<SqliteLink> {
  readonly database: SqliteDatabase
  private readonly statements = new Map<string, SqliteStatement>()
  readonly close: () => Promise<void>

  constructor(database: SqliteDatabase, close: () => Promise<void>) {
    if (typeof database.prepare !== 'function' || typeof database.exec !== 'function') {
      throw new InvalidArgumentError(
        'sqliteStore needs a DatabaseSync of node:sqlite or a Database of better-sqlite3',
        {
          argument: 'database',
        },
      )
    }
    this.database = database
    this.close = close
  }

  borrow<T>(call: Call, work: (link: SqliteLink) => Promise<T>): Promise<T> {
    return work(new Link(this, call))
  }

  send(sql: string, values: readonly SqliteValue[]): Cells[] {
    // Columns come in the order of the statement, and none of ours has a name twice.
    return this.prepared(sql)
      .all(...values)
      .map((row) => Object.values(row as Record<string, unknown>))
  }

  change(sql: string, values: readonly SqliteValue[]): number {
    return Number(this.prepared(sql).run(...values).changes)
  }

  private prepared(sql: string): SqliteStatement {
    let statement = this.statements.get(sql)
    if (statement === undefined) {
      statement = this.database.prepare(sql)
      this.statements.set(sql, statement)
    }
    return statement
  }
}

class Link implements SqliteLink {
  private readonly driver: SqliteDriver
  private readonly call: Call

  constructor(driver: SqliteDriver, call: Call) {
    this.driver = driver
    this.call = call
  }

  run(sql: string, values: readonly SqliteValue[]): Promise<readonly Cells[]> {
    return this.insist(() => this.driver.send(sql, values))
  }

  change(sql: string, values: readonly SqliteValue[]): Promise<number> {
    return this.insist(() => this.driver.change(sql, values))
  }

  exec(sql: string): Promise<void> {
    return this.insist(() => void this.driver.database.exec(sql))
  }

  /** At once, without a promise in between: that costs a good part of a statement. */
  private insist<R>(send: () => R): Promise<R> {
    if (this.call.expired) return Promise.reject(new TimeIsUp())
    try {
      return Promise.resolve(send())
    } catch (error) {
      return isBusy(error) ? this.again(send) : Promise.reject(error as Error)
    }
  }

  /** Another process writes just now. */
  private async again<R>(send: () => R): Promise<R> {
    await new Promise((resolve) => setTimeout(resolve, Math.random()))
    return insisting(this.call, isBusy, () => Promise.resolve().then(send))
  }
}

/** node:sqlite tells a number, better-sqlite3 a name. */
export function isBusy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  if ('errcode' in error && typeof error.errcode === 'number') return BUSY.has(error.errcode & 0xff)
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))
}

/** Not a database, cannot be opened, read-only, no such table. */
const FINAL = /^SQLITE_(NOTADB|CANTOPEN|READONLY|CORRUPT|AUTH)/

export const isFinal = (code: string): boolean => FINAL.test(code)

/** In the order of a statement's parameters; lists as JSON. */
export function valuesOf(params: readonly string[], values: Values): SqliteValue[] {
  return params.map((param) => plain(valueOf(values, param)))
}

const plain = (value: Value): SqliteValue =>
  value === null || typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)
