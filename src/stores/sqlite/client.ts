import { InvalidArgumentError } from '../../core/errors.ts'
import { CLOSED } from '../sql/calls.ts'
import { DatabaseError } from '../sql/failure.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Call, Driver } from '../sql/client.ts'
import type { Cells } from '../sql/row.ts'
import { valueOf } from '../sql/statement.ts'
import type { Value, Values } from '../sql/statement.ts'
import { insisting } from '../sql/turns.ts'
import { fileOf, inTransaction, ownConnection } from './connection.ts'
import type { ClosableDatabase } from './connection.ts'
import { isBusy, LOCKED, named } from './failure.ts'
import { SameFile } from './same-file.ts'

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

// Taken once: a user's fake timers must not make anybody wait for ever.
const { performance, setTimeout, setImmediate } = globalThis

/** Milliseconds. So long may statements follow each other before everything else in the process has its turn. */
const AT_ONCE_MS = 10

export class SqliteDriver implements Driver<SqliteLink> {
  /** The one that was passed in. Guarded work is given it. */
  readonly database: SqliteDatabase
  /** For locks: a connection of our own, once it was needed. */
  private own: ClosableDatabase | undefined
  /** There can be none: the user's tasks use ours, too, and it may be in a transaction at any time. */
  private shared = false
  private closed = false
  /** When the first statement was sent since the event loop last turned. */
  private busySince: number | undefined
  private readonly statements = new Map<string, SqliteStatement>()
  private readonly file: SameFile
  private readonly closeUsers: (() => void) | undefined

  constructor(database: SqliteDatabase, close?: () => void) {
    if (typeof database.prepare !== 'function' || typeof database.exec !== 'function') {
      throw new InvalidArgumentError(
        'sqliteStore needs a DatabaseSync of node:sqlite or a Database of better-sqlite3',
        {
          argument: 'database',
        },
      )
    }
    this.database = database
    this.closeUsers = close
    this.file = new SameFile(fileOf(database))
  }

  /** What is on the database now is not what others see. */
  isFileGone(): boolean {
    return this.file.isGone()
  }

  borrow<T>(call: Call, work: (connection: SqliteLink) => Promise<T>): Promise<T> {
    const connection = new Connection(this, call)
    return this.isLong() ? this.turn().then(() => work(connection)) : work(connection)
  }

  /**
   * Whether the event loop is to turn first. Answers come at once, so a loop that takes one lock after the other would let
   * nothing else happen: no timer, no socket, no renewal.
   */
  isLong(): boolean {
    if (this.busySince !== undefined) return performance.now() - this.busySince > AT_ONCE_MS
    this.busySince = performance.now()
    setImmediate(() => (this.busySince = undefined))
    return false
  }

  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  send(sql: string, values: readonly SqliteValue[]): Cells[] {
    return cellsOf(this.prepared(sql).all(...values))
  }

  change(sql: string, values: readonly SqliteValue[]): number {
    return Number(this.prepared(sql).run(...values).changes)
  }

  exec(sql: string): void {
    this.connection().exec(sql)
  }

  close(): Promise<void> {
    if (this.closed) return Promise.resolve()
    this.closed = true
    this.statements.clear()
    this.own?.close()
    this.own = undefined
    this.closeUsers?.()
    return Promise.resolve()
  }

  private prepared(sql: string): SqliteStatement {
    this.file.require()
    const database = this.own ?? this.connection()
    let statement = this.statements.get(sql)
    if (statement === undefined) {
      statement = database.prepare(sql)
      this.statements.set(sql, statement)
    }
    return statement
  }

  /** The one for locks, if it can be used now. */
  private connection(): SqliteDatabase {
    if (this.own !== undefined) return this.own
    // Whoever waited for a turn to write must not open it again.
    if (this.closed) throw CLOSED
    if (!this.shared) {
      this.own = ownConnection(this.database)
      if (this.own !== undefined) return this.own
      this.shared = true
    }
    if (inTransaction(this.database)) throw new InTransaction()
    return this.database
  }
}

/** Columns come in the order of the statement, and none of ours has a name twice. */
export function cellsOf(rows: readonly unknown[]): Cells[] {
  return rows.map((row) => Object.values(row as Record<string, unknown>))
}

/** What happens now on the connection could be undone by somebody else. It is waited for, like another process. */
class InTransaction extends DatabaseError {
  constructor() {
    super(
      'The database is in a transaction, and a lock taken there would be undone by its rollback. End it before you ask ' +
        'for a lock, or give sqliteStore a file, to which it opens a connection of its own',
      'HOLDFAST_TRANSACTION',
    )
  }
}

class Connection implements SqliteLink {
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
    return this.insist(() => this.driver.exec(sql))
  }

  /** At once, without a promise in between: that costs a good part of a statement. */
  private insist<R>(send: () => R): Promise<R> {
    if (this.call.expired) return Promise.reject(new TimeIsUp())
    try {
      return Promise.resolve(send())
    } catch (error) {
      return this.hindered(error) ? this.again(send) : Promise.reject(named(error))
    }
  }

  /** Another connection writes just now. */
  private async again<R>(send: () => R): Promise<R> {
    await new Promise((resolve) => setTimeout(resolve, Math.random()))
    try {
      return await insisting(
        this.call,
        (error) => this.hindered(error),
        () => Promise.resolve().then(send),
      )
    } catch (error) {
      throw named(error)
    }
  }

  /** Whether waiting may help. Whoever waits in vain hears what for. */
  private hindered(error: unknown): boolean {
    if (error instanceof InTransaction) this.call.obstacle = error
    else if (isBusy(error)) this.call.obstacle = LOCKED
    else return false
    return true
  }
}

/** In the order of a statement's parameters; lists as JSON. */
export function valuesOf(params: readonly string[], values: Values): SqliteValue[] {
  return params.map((param) => plain(valueOf(values, param)))
}

const plain = (value: Value): SqliteValue =>
  value === null || typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)
