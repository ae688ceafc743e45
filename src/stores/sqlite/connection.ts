import type { SqliteDatabase } from './client.ts'
import { isBusy } from './failure.ts'

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
 * connection, an encrypted one cannot be read without its key, and the object may be a wrapper that is no driver's.
 */
export function ownConnection(database: SqliteDatabase): ClosableDatabase | undefined {
  const file = fileOf(database)
  // One that was opened for reading only is not to be written to in a roundabout way.
  if (file === '' || ('readonly' in database && database.readonly === true)) return undefined
  const Database = database.constructor as new (path: string) => ClosableDatabase
  if ((Database as unknown) === Object) return undefined
  let own: ClosableDatabase | undefined
  try {
    own = new Database(file)
    if (fileOf(own) !== file) throw new Error('another file')
    own.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    // An encrypted file does not let this happen.
    own.prepare('SELECT count(*) FROM sqlite_master').all()
    // A lock need not outlive the machine: in WAL mode the file is safe without a wait for the disk.
    if (journalMode(own) === 'wal') own.exec('PRAGMA synchronous = NORMAL')
    return own
  } catch (error) {
    own?.close()
    // Somebody has the file to himself just now: that is to be waited for.
    if (isBusy(error)) throw error
    return undefined
  }
}

/** The main file's full path; empty for a database in memory. */
function fileOf(database: SqliteDatabase): string {
  const rows = database.prepare('PRAGMA database_list').all() as { name?: unknown; file?: unknown }[]
  const file = rows.find(({ name }) => name === 'main')?.file
  return typeof file === 'string' ? file : ''
}

function journalMode(database: SqliteDatabase): unknown {
  const [row] = database.prepare('PRAGMA journal_mode').all() as { journal_mode?: unknown }[]
  return row?.journal_mode
}

/** Whether whatever runs on this connection now is part of a transaction. */
export function inTransaction(database: SqliteDatabase): boolean {
  const { isTransaction, inTransaction: inside } = database as Telling
  if (typeof isTransaction === 'boolean') return isTransaction
  if (typeof inside === 'boolean') return inside
  try {
    database.exec('BEGIN')
  } catch {
    return true
  }
  database.exec('COMMIT')
  return false
}
