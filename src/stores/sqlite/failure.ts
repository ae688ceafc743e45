import { codeOf, DatabaseError } from '../sql/causes.ts'

// SQLITE_BUSY, SQLITE_LOCKED and what they are extended to: another connection writes just now.
const BUSY = new Set([5, 6])

export const LOCKED: DatabaseError = new DatabaseError(
  'The database is locked: another connection has a transaction open that writes to it (or reads it, unless it is in ' +
    'WAL mode). A transaction of your own that waits for a lock inside is one',
  'SQLITE_BUSY',
)

const NAMES: Readonly<Record<number, string>> = {
  3: 'SQLITE_PERM',
  8: 'SQLITE_READONLY',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  23: 'SQLITE_AUTH',
  26: 'SQLITE_NOTADB',
}

/** node:sqlite has one code for all that SQLite says. */
export function named(error: unknown): Error {
  const { errcode, message } = error as { errcode?: unknown; message?: unknown }
  const missing = String(message).startsWith('no such table')
  const name = missing ? 'SQLITE_NO_TABLE' : typeof errcode === 'number' ? NAMES[errcode & 0xff] : undefined
  return name === undefined ? (error as Error) : new DatabaseError(String(message), name)
}

/** node:sqlite tells a number, better-sqlite3 a name. */
export function isBusy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  if ('errcode' in error && typeof error.errcode === 'number') return BUSY.has(error.errcode & 0xff)
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))
}

/** Not a database, cannot be opened, read-only, no such table. */
const FINAL = /^SQLITE_(NO_TABLE|NOTADB|CANTOPEN|READONLY|CORRUPT|AUTH|PERM)/

export const isFinal = (code: string): boolean => FINAL.test(code)
