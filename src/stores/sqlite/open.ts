import { checkOptions } from '../../core/arguments.ts'
import { DriverMissingError, InvalidArgumentError } from '../../core/errors.ts'
import { required } from '../../transport/driver.ts'
import { codeOf } from '../sql/failure.ts'
import { reached } from '../sql/open.ts'
import { isBusy } from './failure.ts'
import type { SqliteDatabase } from './client.ts'
import { BUSY_MS, fileOf } from './connection.ts'
import type { ClosableDatabase } from './connection.ts'
import { SQLITE_OPTIONS, SqliteSqlStore } from './store.ts'
import type { SqliteStore, SqliteStoreOptions } from './store.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout } = globalThis

type Constructor = new (path: string) => ClosableDatabase

/** Opens `sqlite:<path>`; a file, for several processes. Closing the store closes it. */
export async function openSqliteStore(
  url: string,
  options: SqliteStoreOptions = {},
): Promise<SqliteStore<SqliteDatabase>> {
  checkOptions(options, SQLITE_OPTIONS, 'table')
  const path = url.replace(/^sqlite:(\/\/(?=\/))?/i, '')
  if (path === '') throw refused('names no file: sqlite:locks.db')
  // Part of a file's name, they would lead to another file, with other locks in it.
  if (path.includes('?'))
    throw refused('can say no settings, only a file; give sqliteStore() a file with a ? in its name')
  if (/^sqlite:\/\/[^/]/i.test(url))
    throw refused('has two slashes: sqlite:locks.db from here, sqlite:/var/lib/locks.db from the root')
  const database = opened(databaseClass(), path)
  try {
    if (fileOf(database) === '') throw inMemory()
    // Readers and the writer do not wait for each other, and a commit does not wait for the disk: a lock need not
    // outlive the machine, on which all who could hold it run.
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    await persistently(() => database.exec('PRAGMA journal_mode = WAL'))
    database.exec('PRAGMA synchronous = NORMAL')
  } catch (error) {
    database.close()
    throw error
  }
  const store = new SqliteSqlStore(database, { ...options, close: () => database.close() })
  return (await reached(store, url)) as unknown as SqliteStore<SqliteDatabase>
}

function refused(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`The URL ${problem}`, { argument: 'url' })
}

/** better-sqlite3 looks for its native program here. A package manager may have left it out, and a newer Node needs another. */
function opened(Database: Constructor, path: string): ClosableDatabase {
  try {
    return new Database(path)
  } catch (error) {
    if (!/bindings file|NODE_MODULE_VERSION|ERR_DLOPEN_FAILED/.test(`${codeOf(error)} ${String(error)}`))
      throw error
    throw new DriverMissingError(
      'The package better-sqlite3 is installed without its native program, or with one for another Node: npm rebuild better-sqlite3. With pnpm allow it first: pnpm approve-builds',
      { store: 'sqlite', cause: error },
    )
  }
}

function inMemory(): InvalidArgumentError {
  return new InvalidArgumentError(
    'A SQLite database in memory is one connection’s alone. Use memory: for the tasks of a process, or a file',
    { argument: 'url' },
  )
}

/** The first use of a new file changes its mode, which nobody else may read or write meanwhile. */
async function persistently(change: () => void): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return change()
    } catch (error) {
      if (attempt === 100 || !isBusy(error)) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
  }
}

/** What Node brings along from 22.13 on, else better-sqlite3: a native module, which no bundle can contain. */
function databaseClass(): Constructor {
  const builtin = process.getBuiltinModule?.('node:sqlite') as { DatabaseSync: Constructor } | undefined
  const found = builtin?.DatabaseSync ?? (required('better-sqlite3') as Constructor | undefined)
  if (found !== undefined) return found
  throw new DriverMissingError(
    `The sqlite store needs Node 22.13 or later, or the package better-sqlite3: npm install better-sqlite3`,
    { store: 'sqlite' },
  )
}
