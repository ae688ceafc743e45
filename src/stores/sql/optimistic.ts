import { ConflictError, InvalidArgumentError } from '../../core/errors.ts'
import { checkChanges, INSIST_MS, KeyColumns, pause, quoted, Wording } from './user-table.ts'
import type { RowKey, UserTables } from './user-table.ts'

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

/** Says in an update that the row is to stay as it is. */
export const skip: unique symbol = Symbol('holdfast.skip')

export interface OptimisticOptions {
  /** `table` or `schema.table`. */
  readonly table: string
  /** The column that says which row, or several that do together; they must be unique. */
  readonly key: string | readonly string[]
  /** The column that counts the changes. Default `version`. */
  readonly version?: string | undefined
  /** How often to try before giving up with a ConflictError. Default 50. */
  readonly attempts?: number | undefined
}

export type Row = Readonly<Record<string, unknown>>

export type OptimisticResult<R> =
  /** `row` is what it was changed from. */
  | { readonly kind: 'updated'; readonly row: R; readonly attempts: number }
  | { readonly kind: 'skipped'; readonly row: R }
  | { readonly kind: 'missing' }

export interface OptimisticTable<R extends object = Row> {
  /**
   * Reads the row, asks what to change, and writes that if nobody else has changed the row since; otherwise from the
   * beginning. `change` may be called several times: it must do nothing but compute. Inside of a transaction nothing is
   * tried again: what the server says about it (a deadlock, a serialization failure) is thrown, and a conflict is a
   * ConflictError.
   */
  update(
    key: RowKey,
    change: (row: R) => Readonly<Record<string, unknown>> | typeof skip,
  ): Promise<OptimisticResult<R>>
}

export function optimisticTable<R extends object>(
  tables: UserTables,
  { table, key, version = 'version', attempts = 50 }: OptimisticOptions,
): OptimisticTable<R> {
  if (!Number.isInteger(attempts) || attempts < 1) {
    throw new InvalidArgumentError('attempts must be a whole number of at least 1', { argument: 'attempts' })
  }
  const from = quoted(tables, 'table', table)
  const keys = new KeyColumns(tables, key)
  const count = quoted(tables, 'version', version)

  const read = (value: RowKey): Promise<readonly Record<string, unknown>[]> => {
    const words = new Wording(tables)
    const where = keys.condition(words, value)
    return tables.rows(`SELECT * FROM ${from} WHERE ${where}`, words.values)
  }

  const write = async (
    value: RowKey,
    seen: unknown,
    changes: Readonly<Record<string, unknown>>,
    inside: boolean,
  ): Promise<number> => {
    checkChanges(changes)
    const fixed = [version, ...keys.names]
    if (fixed.some((column) => column in changes)) {
      throw new InvalidArgumentError(`An update must not set ${fixed.join(' or ')}`, { argument: 'change' })
    }
    const words = new Wording(tables)
    const set = [...words.assignments(changes), `${count} = ${count} + 1`]
    const where = `${keys.condition(words, value)} AND ${count} = ${words.value(seen)}`
    const sql = `UPDATE ${from} SET ${set.join(', ')} WHERE ${where}`
    return (await tables.change(sql, words.values, inside)).rows
  }

  const once = async (
    value: RowKey,
    change: (row: R) => Readonly<Record<string, unknown>> | typeof skip,
    inside: boolean,
  ): Promise<OptimisticResult<R> | 'conflict'> => {
    const [row] = await read(value)
    if (row === undefined) return { kind: 'missing' }
    const seen = cell(row, version)
    await checkCount(tables, table, version, seen)
    const changes = change(row as R)
    if (changes === skip) return { kind: 'skipped', row: row as R }
    const changed = await write(value, seen, changes, inside)
    return changed > 0 ? { kind: 'updated', row: row as R, attempts: 1 } : 'conflict'
  }

  return {
    async update(value, change) {
      if (await tables.inTransaction()) {
        const result = await once(value, change, true)
        if (result !== 'conflict') return result
        const message = `The row in ${table} was changed by others. Roll the transaction back and start it again: nothing is tried twice inside of one.`
        throw new ConflictError(message, { table, attempts: 1 })
      }
      let patience = INSIST_MS
      let locked: { readonly error: unknown } | undefined
      for (let attempt = 1; attempt <= attempts; attempt++) {
        const began = performance.now()
        locked = undefined
        const result = await once(value, change, false).catch((error: unknown) => {
          patience -= performance.now() - began
          if (!tables.undone(error) || patience < 0) throw error
          if (tables.locked(error)) locked = { error }
          return 'conflict' as const
        })
        if (result !== 'conflict')
          return result.kind === 'updated' ? { ...result, attempts: attempt } : result
        if (attempt < attempts) await pause(attempt)
      }
      // Whoever keeps a row locked has changed nothing yet: that is no conflict.
      if (locked !== undefined) throw (locked as { readonly error: unknown }).error
      const message = `The row in ${table} was changed by others in each of ${attempts} attempts. Try again later, or use a lock.`
      throw new ConflictError(message, { table, attempts })
    },
  }
}

/** A column's value, also where something between has given the columns other names: ORMs make `rowVersion` of `row_version`. */
function cell(row: Row, column: string): unknown {
  if (column in row) return row[column]
  const named = Object.keys(row).find((key) => plainName(key) === plainName(column))
  return named === undefined ? undefined : row[named]
}

const plainName = (name: string): string => name.replaceAll('_', '').toLowerCase()

/** The largest numbers of the types that are used to count. */
const LARGEST = new Set([7, 8, 15, 16, 23, 24, 31, 32, 63, 64].map((bits) => 2n ** BigInt(bits) - 1n))

/** A count must be known exactly, and there must be a next one: otherwise two could take the same for theirs. */
async function checkCount(tables: UserTables, table: string, version: string, seen: unknown): Promise<void> {
  const wrong = (why: string): InvalidArgumentError =>
    new InvalidArgumentError(`${table} has no column ${version} that counts: ${why}`, { argument: 'version' })
  if (seen === undefined || seen === null) throw wrong('there is nothing in it')
  if (typeof seen === 'number' && !Number.isSafeInteger(seen)) {
    throw wrong(
      'its number cannot be told exactly. Have the driver give large ones as strings, or begin again at 0',
    )
  }
  const digits = typeof seen === 'object' ? '' : String(seen as string | number | bigint)
  if (tables.largest === undefined || !/^\d+$/.test(digits)) return
  const count = BigInt(digits)
  if (!LARGEST.has(count) && !/^9+$/.test(digits)) return
  const largest = await tables.largest(table, version)
  if (largest !== undefined && count >= largest) {
    throw wrong('it is full, and the server might write the same number again. Make it a BIGINT')
  }
}
