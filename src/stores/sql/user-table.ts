import { backOff } from '../../core/back-off.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { checkIdentifier } from './identifiers.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout } = globalThis

/** What an UPDATE did. */
export interface Changed {
  readonly rows: number
  /** The server may have stored something else than it was given: MySQL without a strict `sql_mode` makes it fit. */
  readonly altered: boolean
}

/** What the helpers for users' own tables need of a driver. Values never become part of a statement's text. */
export interface UserTables {
  readonly quote: '"' | '`'
  placeholder(index: number): string
  /** Has the server take a value for a whole number of 64 bits. */
  integer(value: string): string
  /** For a look of our own. */
  select(sql: string, values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** For rows that the user is given, with values as the driver was told to make them. */
  rows(sql: string, values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** `inside`: what `inTransaction` said before. Where one connection is for all tasks, one may have begun since. */
  change(sql: string, values: readonly unknown[], inside: boolean): Promise<Changed>
  /** The largest number that a column takes, where the server does not refuse a larger one. */
  largest?(table: string, column: string): Promise<bigint | undefined>
  /** A row's key, as it has to be compared. */
  key(value: unknown): unknown
  /** What makes a SELECT read the newest row, whatever picture its transaction has. */
  readonly newest: string
  /**
   * Whether statements are part of a transaction, of somebody else's then. Nothing may be tried again there: the server may
   * have undone what came before, and what follows would be committed by itself.
   */
  inTransaction(): boolean | Promise<boolean>
  /** The server undid the statement because of another one: deadlock, serialization failure, busy. */
  undone(error: unknown): boolean
  /** Of those: somebody keeps the row, or the file, locked, and has changed nothing yet. */
  locked(error: unknown): boolean
}

/** A table's or column's name, checked and quoted; `schema.table` is two names. */
export function quoted({ quote }: UserTables, argument: string, name: string): string {
  return name
    .split('.')
    .map((part) => {
      checkIdentifier(argument, part)
      return `${quote}${part}${quote}`
    })
    .join('.')
}

/** One value, or one for each column of the key. */
export type RowKey = string | number | bigint | { readonly [column: string]: string | number | bigint }

/** The column, or columns, that say which row. */
export class KeyColumns {
  readonly names: readonly string[]
  private readonly tables: UserTables

  constructor(tables: UserTables, key: string | readonly string[]) {
    this.names = typeof key === 'string' ? [key] : key
    this.tables = tables
    if (this.names.length === 0) throw new InvalidArgumentError('key must name a column', { argument: 'key' })
    for (const name of this.names) checkIdentifier('key', name)
  }

  /** For a WHERE. Every column has to be there: with one less, more rows than one would be meant. */
  condition(words: Wording, value: RowKey): string {
    const { names, tables } = this
    const single = names.length === 1 && typeof value !== 'object' ? { [names[0] ?? '']: value } : {}
    const given = typeof value === 'object' ? (value ?? {}) : single
    const fits = Object.keys(given).length === names.length && names.every((name) => isValue(given[name]))
    if (!fits) {
      throw new InvalidArgumentError(`The row's key must be a value for each of: ${names.join(', ')}`, {
        argument: 'key',
      })
    }
    return names
      .map((name) => `${quoted(tables, 'key', name)} = ${words.value(tables.key(given[name]))}`)
      .join(' AND ')
  }
}

const isValue = (value: unknown): boolean => ['string', 'number', 'bigint'].includes(typeof value)

/** Builds one statement: its text, and its values in order. */
export class Wording {
  readonly values: unknown[] = []
  private readonly tables: UserTables

  constructor(tables: UserTables) {
    this.tables = tables
  }

  value(value: unknown): string {
    return this.tables.placeholder(this.values.push(value))
  }

  assignments(changes: Readonly<Record<string, unknown>>): string[] {
    checkChanges(changes)
    return Object.entries(changes).map(
      ([column, value]) => `${quoted(this.tables, 'column', column)} = ${this.value(value)}`,
    )
  }
}

/** A promise, or a Map, has no columns: the row would be counted as changed, with nothing written to it. */
export function checkChanges(changes: unknown): void {
  const plain =
    typeof changes === 'object' &&
    changes !== null &&
    !('then' in changes && typeof changes.then === 'function') &&
    !(Symbol.iterator in changes)
  if (plain && Object.values(changes as object).every((value) => value !== undefined)) return
  throw new InvalidArgumentError(
    plain
      ? 'A column cannot be changed to undefined: leave it out, or write null'
      : 'What to change must be an object with a value for each column. It must not be a promise: nothing is waited for',
    { argument: 'change' },
  )
}

/** A server that lets a statement wait for long before it undoes it is not asked for more of that. */
export const INSIST_MS = 5000

const PAUSE_MS = { first: 1, longest: 100 }

/** Before the next attempt; longer after each. */
export function pause(attempt: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * backOff(attempt, PAUSE_MS)))
}
