import { ConflictError, InvalidArgumentError } from '../../core/errors.ts'
import { INSIST_MS, KeyColumns, pause, quoted, Wording } from './user-table.ts'
import type { Changed, RowKey, UserTables } from './user-table.ts'

export interface FencedOptions {
  /** `table` or `schema.table`. */
  readonly table: string
  /** The column that says which row, or several that do together; they must be unique. */
  readonly key: string | readonly string[]
  /** The column that remembers the largest token that wrote. A 64-bit integer, or null before the first. Default `fence`. */
  readonly fence?: string | undefined
}

/** `stale`: somebody with a larger token has written already. `missing`: there is no such row. */
export type FencedResult = 'written' | 'stale' | 'missing'

export interface FencedTable {
  /** Writes, unless a holder that came later has written before. Pass the lease, or its token. */
  update(
    key: RowKey,
    lease: bigint | { readonly token: bigint },
    changes: Readonly<Record<string, unknown>>,
  ): Promise<FencedResult>
}

const ATTEMPTS = 20

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

export function fencedTable(tables: UserTables, { table, key, fence = 'fence' }: FencedOptions): FencedTable {
  const into = quoted(tables, 'table', table)
  const keys = new KeyColumns(tables, key)
  const last = quoted(tables, 'fence', fence)

  const write = (
    value: RowKey,
    token: string,
    changes: Readonly<Record<string, unknown>>,
    inside: boolean,
  ): Promise<Changed> => {
    const words = new Wording(tables)
    // As a number, whatever the column is: of texts, and of a text and a number, the larger one may be the older.
    const number = (): string => tables.integer(words.value(token))
    const set = [...words.assignments(changes), `${last} = ${number()}`]
    const where = `${keys.condition(words, value)} AND (${last} IS NULL OR ${last} <= ${number()})`
    return tables.change(`UPDATE ${into} SET ${set.join(', ')} WHERE ${where}`, words.values, inside)
  }

  /** Undefined: there is no such row. */
  const read = async (value: RowKey): Promise<bigint | null | undefined> => {
    const words = new Wording(tables)
    const where = keys.condition(words, value)
    const sql = `SELECT ${last} AS fence FROM ${into} WHERE ${where}${tables.newest}`
    const [row] = await tables.select(sql, words.values)
    if (row === undefined) return undefined
    return row['fence'] === null ? null : BigInt(row['fence'] as string | number | bigint)
  }

  /** Undefined: the row came, or came back, between the two statements. */
  const once = async (
    value: RowKey,
    token: bigint,
    changes: Readonly<Record<string, unknown>>,
    inside: boolean,
  ): Promise<FencedResult | undefined> => {
    const { rows, altered } = await write(value, String(token), changes, inside)
    if (rows > 0 && !altered) return 'written'
    // None changed can also mean that the row was so already: MySQL does not count those unless told to.
    const seen = await read(value)
    if (seen === token) return 'written'
    if (rows > 0) {
      // Whoever was quicker than this look has left a larger one.
      if (seen === undefined || (seen !== null && seen > token)) return 'written'
      throw tooSmall(table, fence)
    }
    if (seen === undefined) return 'missing'
    return seen !== null && seen > token ? 'stale' : undefined
  }

  return {
    async update(value, lease, changes) {
      const token = tokenOf(lease)
      // To be asked before: what undoes a statement may end its transaction, too.
      const inside = await tables.inTransaction()
      const until = performance.now() + INSIST_MS
      let locked: { readonly error: unknown } | undefined
      for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
        locked = undefined
        const result = await once(value, token, changes, inside).catch(async (error: unknown) => {
          if (inside || !tables.undone(error) || performance.now() > until) throw error
          if (tables.locked(error)) locked = { error }
          await pause(attempt)
          return undefined
        })
        if (result !== undefined) return result
      }
      if (locked !== undefined) throw (locked as { readonly error: unknown }).error
      const message = `Others wrote to the row in ${table} in each of ${ATTEMPTS} attempts, or it came and went. Try again later.`
      throw new ConflictError(message, { table, attempts: ATTEMPTS })
    },
  }
}

/** As a text or a number it would be cast to 0 by some servers, and refuse nobody: a token that came over a wire is one. */
function tokenOf(lease: unknown): bigint {
  const token =
    typeof lease === 'object' && lease !== null && 'token' in lease ? lease.token : (lease as unknown)
  if (typeof token === 'bigint' && token >= 0n) return token
  throw new InvalidArgumentError('The lease must be one, or its token as a bigint: BigInt(text)', {
    argument: 'lease',
  })
}

function tooSmall(table: string, fence: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `The column ${fence} of ${table} cannot hold a token, and the server stored another number: no later write would be ` +
      'refused. Make it a BIGINT',
    { argument: 'fence' },
  )
}
