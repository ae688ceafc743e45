import { codeOf, DatabaseError } from '../sql/failure.ts'
import { fencedTable } from '../sql/fenced.ts'
import type { FencedOptions, FencedTable } from '../sql/fenced.ts'
import { optimisticTable } from '../sql/optimistic.ts'
import type { OptimisticOptions, OptimisticTable, Row } from '../sql/optimistic.ts'
import { runChange, runRows } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import type { UserTables } from '../sql/user-table.ts'
import { isInTransaction, PASS_FUNCTION, refuseMariadb } from './client.ts'
import type { MysqlPoolConnection } from './client.ts'
import { asItIs } from './core-pool.ts'

// Taken once: a user's fake timers must not reach locks.
const { Date } = globalThis

/** A pool or connection of mysql2, inside a transaction or not. */
export interface MysqlExecutor {
  // mysql2 has its own idea of what may be a value.
  execute(
    options: { readonly sql: string } & typeof AS_OBJECTS,
    values: never,
  ): Promise<readonly [unknown, unknown]>
}

// Said with every statement: the pool's own settings may differ.
const AS_OBJECTS = { rowsAsArray: false, nestTables: false } as const
const AS_NUMBERS = { typeCast: asItIs } as const

export type MysqlTables = MysqlExecutor | { promise(): MysqlExecutor }

const UNDONE = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CHECKREAD'])

function userTables(client: MysqlTables | SqlRunner): UserTables {
  if (typeof client !== 'function') refuseMariadb(client, 'client', PASS_FUNCTION)
  const rows = (sql: string, values: readonly unknown[], how: object = {}): Promise<Rows> =>
    typeof client === 'function'
      ? runRows(client, sql, values.map(plain))
      : (execute(client, sql, values, how) as Promise<Rows>)
  const select = (sql: string, values: readonly unknown[]): Promise<Rows> => rows(sql, values, AS_NUMBERS)
  return {
    quote: '`',
    placeholder: () => '?',
    integer: (value) => `CAST(${value} AS SIGNED)`,
    key: keyOf,
    newest: ' LOCK IN SHARE MODE',
    // Of a function nothing is known: one attempt is right everywhere.
    inTransaction: () => typeof client === 'function' || isInside(client),
    select,
    rows,
    change: async (sql, values) => {
      if (typeof client === 'function') return runChange(client, sql, values.map(plain))
      const executor = promised(client)
      const header = (await (isPool(executor)
        ? changeAlone(executor, sql, values)
        : execute(executor, sql, values))) as Header
      return { rows: header.affectedRows, altered: header.warningStatus !== 0 }
    },
    largest: (table, column) => largest(select, table, column),
    undone: (error) => UNDONE.has(codeOf(error)),
    locked: (error) => codeOf(error) === 'ER_LOCK_WAIT_TIMEOUT',
  }
}

type Rows = readonly Record<string, unknown>[]

interface Header {
  readonly affectedRows: number
  /** How many warnings there are. */
  readonly warningStatus?: number
}

// Prepared statements: the values travel apart from the text, whatever the sql_mode says about escapes.
async function execute(
  client: MysqlTables,
  sql: string,
  values: readonly unknown[],
  how: object = {},
): Promise<unknown> {
  const [result] = await promised(client).execute({ sql, ...AS_OBJECTS, ...how }, values.map(plain) as never)
  return result
}

const promised = (client: MysqlTables): MysqlExecutor => ('promise' in client ? client.promise() : client)

interface Pool extends MysqlExecutor {
  getConnection(): Promise<MysqlExecutor & Pick<MysqlPoolConnection, 'rollback' | 'release' | 'destroy'>>
}

const isPool = (executor: MysqlExecutor): executor is Pool => 'getConnection' in executor

/** A pool sends each statement by itself. */
async function isInside(client: MysqlTables): Promise<boolean> {
  return !('getConnection' in client) && isInTransaction((await execute(client, 'DO 0', [])) as object)
}

/**
 * On a connection that somebody gave back in the middle of a transaction, or with autocommit off, what is written would be
 * nobody's to commit, and locked until the connection ends. Its answer tells: then all of it is undone.
 */
async function changeAlone(pool: Pool, sql: string, values: readonly unknown[]): Promise<unknown> {
  const connection = await pool.getConnection()
  let inside = false
  try {
    const header = await execute(connection, sql, values)
    inside = isInTransaction(header as object)
    // Where that does not end it, the connection's end does.
    if (inside) await connection.rollback().catch(() => {})
    else return header
  } finally {
    if (inside) connection.destroy()
    else connection.release()
  }
  throw NOT_ALONE
}

const NOT_ALONE = new DatabaseError(
  'The connection of the pool is in a transaction or has autocommit off, and nobody would commit what is written there. ' +
    'Nothing was written. Give the pool autocommit on, and end transactions before their connections are given back',
  'HOLDFAST_AUTOCOMMIT',
)

const BITS: Readonly<Record<string, number>> = {
  tinyint: 8,
  smallint: 16,
  mediumint: 24,
  int: 32,
  bigint: 64,
}

/** Without a strict `sql_mode` a column that is full is written again with the number that it has. */
async function largest(
  select: (sql: string, values: readonly unknown[]) => Promise<Rows>,
  table: string,
  column: string,
): Promise<bigint | undefined> {
  const [name, schema = null] = table.split('.').toReversed()
  const sql =
    'SELECT data_type AS kind, column_type AS type, numeric_precision AS digits, numeric_scale AS scale ' +
    'FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND column_name = ?'
  const [row] = await select(sql, [schema, name, column])
  const bits = BITS[String(row?.['kind'])]
  if (bits !== undefined)
    return 2n ** BigInt(String(row?.['type']).includes('unsigned') ? bits : bits - 1) - 1n
  if (row?.['kind'] !== 'decimal') return undefined
  return 10n ** BigInt(Number(row['digits']) - Number(row['scale'])) - 1n
}

/**
 * Where a function has the driver write values into the text (`query` of mysql2, and all ORMs on it), older ones write an
 * object as assignments to the columns that it names. Prepared statements are sent its JSON, and so is this. What says that
 * it is but a text (a Decimal, as Prisma makes them) is sent as that: in JSON it would have quotation marks.
 */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array)
    return value
  const { toJSON } = value as { toJSON?: unknown }
  const said: unknown = typeof toJSON === 'function' ? Reflect.apply(toJSON, value, []) : value
  return typeof said === 'string' || typeof said === 'number' ? said : JSON.stringify(value)
}

/** A key that is a number would be compared as one: to a column of texts 0 is equal to all that are no numbers. */
const keyOf = (value: unknown): unknown =>
  typeof value === 'number' || typeof value === 'bigint' ? String(value) : value

/** Changes rows of your own table without a lock: who finds that somebody else was faster starts again. */
export function optimistic<R extends object = Row>(
  client: MysqlTables | SqlRunner,
  options: OptimisticOptions,
): OptimisticTable<R> {
  return optimisticTable<R>(userTables(client), options)
}

/** Writes to rows of your own table that refuse the token of a former holder. */
export function fenced(client: MysqlTables | SqlRunner, options: FencedOptions): FencedTable {
  return fencedTable(userTables(client), options)
}
