import { codeOf } from '../sql/causes.ts'
import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import type { UserTables } from '../sql/user-table.ts'
import type { PostgresClient } from './client.ts'
import { askInTransaction, inTransaction } from './transaction.ts'

/** A Pool or Client of pg, inside a transaction or not. */
export interface PostgresTables {
  query(query: {
    readonly text: string
    readonly values: unknown[]
  }): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
}

type Rows = readonly Record<string, unknown>[]
type Ways = Pick<UserTables, 'inTransaction' | 'rows' | 'change'>

function byClient(client: PostgresTables): Ways {
  return {
    inTransaction: () => isInTransaction(client),
    rows: async (text, values) => (await client.query({ text, values: [...values] })).rows as Rows,
    change: async (text, values) => {
      const { rowCount } = await client.query({ text, values: [...values] })
      return { rows: rowCount ?? 0, altered: false }
    },
  }
}

function byFunction(run: SqlRunner): Ways {
  return {
    // Nothing is known of it: one attempt is right everywhere.
    inTransaction: () => true,
    rows: (text, values) => runRows(run, text, values),
    change: async (text, values) => {
      const { length: rows } = await runRows(run, `${text} RETURNING 1 AS changed`, values)
      return { rows, altered: false }
    },
  }
}

const UNDONE = new Set(['40001', '40P01', '55P03'])

function userTables(client: PostgresTables | SqlRunner): UserTables {
  const ways = typeof client === 'function' ? byFunction(client) : byClient(client)
  return {
    quote: '"',
    placeholder: (index) => `$${index}`,
    integer: (value) => `CAST(${value} AS bigint)`,
    key: (value) => value,
    newest: ' FOR SHARE',
    ...ways,
    select: ways.rows,
    undone: (error) => UNDONE.has(codeOf(error)),
  }
}

/** A pool sends each statement by itself. */
function isInTransaction(client: PostgresTables): boolean | Promise<boolean> {
  if ('totalCount' in client) return false
  return inTransaction(client as PostgresClient) ?? askInTransaction(client as PostgresClient)
}

/** Changes rows of your own table without a lock: who finds that somebody else was faster starts again. */
export function optimistic<R extends object = Row>(
  client: PostgresTables | SqlRunner,
  options: OptimisticOptions,
): OptimisticTable<R> {
  return optimisticTable<R>(userTables(client), options)
}

/** Writes to rows of your own table that refuse the token of a former holder. */
export function fenced(client: PostgresTables | SqlRunner, options: FencedOptions): FencedTable {
  return fencedTable(userTables(client), options)
}
