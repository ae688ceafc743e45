import { codeOf, isSqlState } from '../sql/failure.ts'
import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import { runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import type { UserTables } from '../sql/user-table.ts'
import { giveBack, lend } from './client.ts'
import type { PostgresClient, PostgresPool } from './client.ts'
import { askInTransaction, inTransaction, InTransaction } from './transaction.ts'

/** A Pool or Client of pg, inside a transaction or not. */
export interface PostgresTables {
  query(query: {
    readonly text: string
    readonly values: unknown[]
  }): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
}

type Rows = readonly Record<string, unknown>[]
type Answer = ReturnType<PostgresTables['query']>
type Ways = Pick<UserTables, 'inTransaction' | 'rows' | 'change'>

function byClient(client: PostgresTables): Ways {
  const send = (text: string, values: readonly unknown[]): Answer => {
    const query = { text, values: [...values] }
    return isPool(client) ? queryAlone(client, query) : client.query(query)
  }
  return {
    // A pool sends each statement by itself.
    inTransaction: () => !isPool(client) && isInside(client as PostgresClient),
    rows: async (text, values) => (await send(text, values)).rows as Rows,
    change: async (text, values) => {
      const { rowCount } = await send(text, values)
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
    locked: (error) => codeOf(error) === '55P03',
  }
}

const isPool = (client: PostgresTables): client is PostgresTables & PostgresPool => 'totalCount' in client

const isInside = (client: PostgresClient): boolean | Promise<boolean> =>
  inTransaction(client) ?? askInTransaction(client)

/** Clients that were given back in the middle of a transaction are closed: nobody would commit what is written there. */
async function queryAlone(
  pool: PostgresPool,
  query: Parameters<PostgresTables['query']>[0],
): Promise<Awaited<Answer>> {
  for (let others = pool.totalCount; ; others--) {
    const client = await lend(pool)
    let broken = true
    try {
      broken = await isInside(client)
      if (!broken) return await client.query(query)
      if (others <= 0) throw new InTransaction()
    } catch (error) {
      broken ||= !isSqlState(codeOf(error))
      throw error
    } finally {
      giveBack(client, broken)
    }
  }
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
