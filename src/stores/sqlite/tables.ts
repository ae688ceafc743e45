import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import type { UserTables } from '../sql/user-table.ts'
import { inTransaction } from './connection.ts'
import { isBusy } from './failure.ts'
import type { SqliteDatabase, SqliteValue } from './client.ts'

function userTables(database: SqliteDatabase): UserTables {
  const all = (sql: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> =>
    Promise.resolve().then(
      () => database.prepare(sql).all(...(values as readonly SqliteValue[])) as Record<string, unknown>[],
    )
  return {
    quote: '"',
    placeholder: () => '?',
    key: (value) => value,
    newest: '',
    inTransaction: () => inTransaction(database),
    select: all,
    change: async (sql, values) => (await all(`${sql} RETURNING 1`, values)).length,
    undone: isBusy,
  }
}

/** Changes rows of your own table without a lock: who finds that somebody else was faster starts again. */
export function optimistic<R extends object = Row>(
  database: SqliteDatabase,
  options: OptimisticOptions,
): OptimisticTable<R> {
  return optimisticTable<R>(userTables(database), options)
}

/** Writes to rows of your own table that refuse the token of a former holder. */
export function fenced(database: SqliteDatabase, options: FencedOptions): FencedTable {
  return fencedTable(userTables(database), options)
}
