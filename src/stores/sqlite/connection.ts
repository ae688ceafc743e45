import type { SqliteDatabase } from './client.ts'
import { EXCLUSIVE, isBusy } from './failure.ts'

/** How long a statement may wait inside SQLite, with the event loop at a stand; longer waits are spent outside. */
export const BUSY_MS = 5

export interface ClosableDatabase extends SqliteDatabase {
  close(): unknown
}

/** What tells whether a database is in a transaction: node:sqlite from 22.16 on, and better-sqlite3. */
interface Telling {
  readonly isTransaction?: unknown
  readonly inTransaction?: unknown
}

/**
 * A connection of our own to the user's file. Locks must not be taken on the user's: whatever task has a transaction
 * open there would take them along into its ROLLBACK. Undefined when there can be none: a database in memory has one
 * connection, an encrypted one cannot be read without its key, one for reading only is not to be written to in a
 * roundabout way, and an object that wraps a driver's may have one connection for all that are made of its class.
 */
export function ownConnection(database: SqliteDatabase): ClosableDatabase | undefined {
  const file = fileOf(database)
  const Database = driverOf(database)
  if (file === '' || Database === undefined) return undefined
  if (pragma(database, 'main.locking_mode') === 'exclusive') throw EXCLUSIVE
  let own: ClosableDatabase | undefined
  try {
    const opened = new Database(file)
    // Nothing is set or closed there before: it could be the user's.
    if (!isAnother(opened, database)) return undefined
    own = opened
    if (fileOf(own) !== file) throw new Error('another file')
    own.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    // An encrypted file does not let this happen.
    own.prepare('SELECT count(*) FROM sqlite_master').all()
    if (!mayWrite(database, own)) throw new Error('for reading only')
    // A lock need not outlive the machine: in WAL mode the file is safe without a wait for the disk.
    if (pragma(own, 'journal_mode') === 'wal') own.exec('PRAGMA synchronous = NORMAL')
    return own
  } catch (error) {
    own?.close()
    // Somebody has the file to himself just now: that is to be waited for.
    if (isBusy(error)) throw error
    return undefined
  }
}

type DatabaseClass = new (path: string) => ClosableDatabase

/** What better-sqlite3 has and hardly anybody else. */
const BETTER = ['pragma', 'backup', 'loadExtension', 'unsafeMode', 'defaultSafeIntegers']

/** The class of a driver that the database is of. Not one that was derived from it: it may do anything when it is made. */
function driverOf(database: SqliteDatabase): DatabaseClass | undefined {
  const builtin = process.getBuiltinModule?.('node:sqlite') as { DatabaseSync: unknown } | undefined
  for (
    let like: unknown = Object.getPrototypeOf(database);
    like !== null;
    like = Object.getPrototypeOf(like)
  ) {
    const { constructor } = like as { constructor: unknown }
    const known =
      constructor === builtin?.DatabaseSync || BETTER.every((name) => Object.hasOwn(like as object, name))
    if (known && typeof constructor === 'function') return constructor as DatabaseClass
  }
  return undefined
}

/** Whether a transaction of the one is none of the other. */
function isAnother(own: SqliteDatabase, users: SqliteDatabase): boolean {
  try {
    own.exec('BEGIN')
  } catch {
    return false
  }
  const during = refusesToBegin(users)
  own.exec('ROLLBACK')
  return !during || refusesToBegin(users)
}

/** Whether the user's connection may write. That of node:sqlite does not tell, but would keep ours from it. */
function mayWrite(users: SqliteDatabase, own: SqliteDatabase): boolean {
  if ('readonly' in users) return users.readonly !== true
  // In the middle of a transaction nothing can be tried.
  if (refusesToBegin(users)) return true
  // If another process writes just now, we hear it here, and do not wait on the user's connection, maybe for long.
  own.exec('BEGIN IMMEDIATE')
  own.exec('ROLLBACK')
  users.exec('BEGIN IMMEDIATE')
  try {
    own.exec('BEGIN IMMEDIATE')
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    users.exec('ROLLBACK')
  }
  return false
}

/** The main file's full path; empty for a database in memory. */
export function fileOf(database: SqliteDatabase): string {
  // Number, name, file: as an object, or as a list with `returnArrays`.
  const rows = database.prepare('PRAGMA database_list').all().map(cells)
  const file = rows.find(([, name]) => name === 'main')?.[2]
  return typeof file === 'string' ? file : ''
}

function pragma(database: SqliteDatabase, name: string): unknown {
  const [row] = database.prepare(`PRAGMA ${name}`).all()
  return cells(row)[0]
}

const cells = (row: unknown): unknown[] => Object.values(row ?? {})

/** Whether whatever runs on this connection now is part of a transaction. */
export function inTransaction(database: SqliteDatabase): boolean {
  const { isTransaction, inTransaction: inside } = database as Telling
  if (typeof isTransaction === 'boolean') return isTransaction
  if (typeof inside === 'boolean') return inside
  return refusesToBegin(database)
}

/** Begins nothing that it does not end. */
function refusesToBegin(database: SqliteDatabase): boolean {
  try {
    database.exec('BEGIN')
  } catch {
    return true
  }
  database.exec('COMMIT')
  return false
}
