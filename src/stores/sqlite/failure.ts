import { codeOf, DatabaseError } from '../sql/failure.ts'

// SQLITE_BUSY, SQLITE_LOCKED and what they are extended to: another connection writes just now.
const BUSY = new Set([5, 6])

export const LOCKED: DatabaseError = new DatabaseError(
  'The database is locked: another connection has a transaction open that writes to it (or reads it, unless it is in ' +
    'WAL mode), or `PRAGMA locking_mode = EXCLUSIVE`. A transaction of your own that waits for a lock inside is one',
  'SQLITE_BUSY',
)

export const EXCLUSIVE: DatabaseError = new DatabaseError(
  'The database was told to keep its file to itself (PRAGMA locking_mode = EXCLUSIVE), and locks are taken on another ' +
    'connection. Leave it at NORMAL',
  'HOLDFAST_EXCLUSIVE',
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

/** What SQLite says of each code. Deno's node:sqlite tells nothing else. */
const WORDS: Readonly<Record<string, number>> = {
  'access permission denied': 3,
  'database is locked': 5,
  'database table is locked': 6,
  'attempt to write a readonly database': 8,
  'database disk image is malformed': 11,
  'database or disk is full': 13,
  'unable to open database file': 14,
  'authorization denied': 23,
  'file is not a database': 26,
}

/** SQLite's own number, without what extends it; `undefined` for errors of others. */
function numberOf(error: unknown): number | undefined {
  const { errcode, message } = error as { errcode?: unknown; message?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  return codeOf(error) === 'ERR_SQLITE_ERROR' ? WORDS[String(message)] : undefined
}

/** node:sqlite has one code for all that SQLite says. */
export function named(error: unknown): Error {
  const { message } = error as { message?: unknown }
  const missing = String(message).startsWith('no such table')
  const name = missing ? 'SQLITE_NO_TABLE' : NAMES[numberOf(error) ?? 0]
  return name === undefined ? (error as Error) : new DatabaseError(String(message), name)
}

/** node:sqlite tells a number, better-sqlite3 a name. */
export function isBusy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const number = numberOf(error)
  return number === undefined ? /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)) : BUSY.has(number)
}

/**
 * What the connection itself still reads (`iterate`) is older than what others have written since: it cannot write, however
 * long it waits, before that is read to its end.
 */
export function isReading(error: unknown): boolean {
  return (error as { errcode?: unknown }).errcode === 517 || codeOf(error) === 'SQLITE_BUSY_SNAPSHOT'
}

export const READING: DatabaseError = new DatabaseError(
  'A statement on the same database is read still (iterate), and what it reads is older than what others have written ' +
    'since: nothing can be written beside it. Read it to its end first, with all(), or on a connection of its own',
  'SQLITE_BUSY_SNAPSHOT',
)

/** Not a database, cannot be opened, read-only, no such table. */
const FINAL = /^SQLITE_(NO_TABLE|NOTADB|CANTOPEN|READONLY|CORRUPT|AUTH|PERM)/

export const isFinal = (code: string): boolean => FINAL.test(code)
