import { InvalidArgumentError } from '../../core/errors.ts'
import { DatabaseError } from '../sql/failure.ts'
import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import type { UserTables } from '../sql/user-table.ts'
import { inTransaction } from './connection.ts'
import { isBusy } from './failure.ts'
import type { SqliteDatabase, SqliteStatement, SqliteValue } from './client.ts'

type Rows = readonly Record<string, unknown>[]

function userTables(database: SqliteDatabase | SqlRunner): UserTables {
  const all = async (sql: string, values: readonly unknown[]): Promise<Rows> =>
    typeof database === 'function'
      ? runRows(database, sql, values)
      : (withColumns(database.prepare(sql)).all(...values.map(checked)) as Rows)
  return {
    quote: '"',
    placeholder: () => '?',
    integer: (value) => `CAST(${value} AS INTEGER)`,
    // node:sqlite and better-sqlite3 send numbers as 5.0, which is another text than 5.
    key: (value) =>
      typeof database !== 'function' && Number.isSafeInteger(value) ? BigInt(value as number) : value,
    newest: '',
    // Of a function nothing is known: one attempt is right everywhere.
    inTransaction: () => typeof database === 'function' || inTransaction(database),
    select: all,
    rows: all,
    change: async (sql, values, inside) => {
      if (!inside && typeof database !== 'function' && inTransaction(database)) throw BEGUN
      const { length: rows } = await all(`${sql} RETURNING 1 AS changed`, values)
      return { rows, altered: false }
    },
    undone: isHindered,
    locked: isHindered,
  }
}

/** Another task of the program has begun a transaction, whose rollback would undo what was called written. */
const BEGUN = new DatabaseError(
  'Another task has a transaction open on this database, and what is written now would be part of it. End it first, or give ' +
    'it a connection of its own',
  'HOLDFAST_TRANSACTION',
)

const isHindered = (error: unknown): boolean => error === BEGUN || isBusy(error)

/** A database of node:sqlite may be set to give lists. */
function withColumns(
  statement: SqliteStatement & { setReturnArrays?: (enabled: boolean) => void },
): SqliteStatement {
  statement.setReturnArrays?.(false)
  return statement
}

/** The drivers take an object that comes first for parameters with names, and then count the others from one too early. */
function checked(value: unknown): SqliteValue {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value as SqliteValue
  throw new InvalidArgumentError('SQLite stores texts, numbers, bytes and null: make one of it first', {
    argument: 'change',
  })
}

/** Changes rows of your own table without a lock: who finds that somebody else was faster starts again. */
export function optimistic<R extends object = Row>(
  database: SqliteDatabase | SqlRunner,
  options: OptimisticOptions,
): OptimisticTable<R> {
  return optimisticTable<R>(userTables(database), options)
}

/** Writes to rows of your own table that refuse the token of a former holder. */
export function fenced(database: SqliteDatabase | SqlRunner, options: FencedOptions): FencedTable {
  return fencedTable(userTables(database), options)
}
