import { codeOf } from '../sql/causes.ts'
import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import type { UserTables } from '../sql/user-table.ts'
import { isInTransaction } from './client.ts'

/** A pool or connection of mysql2, inside a transaction or not. */
export interface MysqlExecutor {
  // mysql2 has its own idea of what may be a value.
  execute(
    options: { readonly sql: string; readonly rowsAsArray: false },
    values: never,
  ): Promise<readonly [unknown, unknown]>
}

export type MysqlTables = MysqlExecutor | { promise(): MysqlExecutor }

const UNDONE = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CHECKREAD'])

function userTables(client: MysqlTables): UserTables {
  const executor = 'promise' in client ? client.promise() : client
  // Prepared statements: the values travel apart from the text, whatever the sql_mode says about escapes.
  const execute = async (sql: string, values: readonly unknown[]): Promise<unknown> => {
    const [result] = await executor.execute({ sql, rowsAsArray: false }, [...values] as never)
    return result
  }
  return {
    quote: '`',
    placeholder: () => '?',
    key: keyOf,
    newest: ' LOCK IN SHARE MODE',
    inTransaction: async () =>
      !('getConnection' in executor) && isInTransaction((await execute('DO 0', [])) as object),
    select: async (sql, values) => (await execute(sql, values)) as Record<string, unknown>[],
    change: async (sql, values) => ((await execute(sql, values)) as { affectedRows: number }).affectedRows,
    undone: (error) => UNDONE.has(codeOf(error)),
  }
}

/** A key that is a number would be compared as one: to a column of texts 0 is equal to all that are no numbers. */
const keyOf = (value: unknown): unknown => (typeof value === 'number' ? String(value) : value)

/** Changes rows of your own table without a lock: who finds that somebody else was faster starts again. */
export function optimistic<R extends object = Row>(
  client: MysqlTables,
  options: OptimisticOptions,
): OptimisticTable<R> {
  return optimisticTable<R>(userTables(client), options)
}

/** Writes to rows of your own table that refuse the token of a former holder. */
export function fenced(client: MysqlTables, options: FencedOptions): FencedTable {
  return fencedTable(userTables(client), options)
}
