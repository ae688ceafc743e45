import { ConflictError } from '../../core/errors.ts'
import { quoted, Wording } from './user-table.ts'
import type { UserTables } from './user-table.ts'

export interface FencedOptions {
  /** `table` or `schema.table`. */
  readonly table: string
  /** The column that says which row; it must be unique. */
  readonly key: string
  /** The column that remembers the largest token that wrote. A 64-bit integer, or null before the first. Default `fence`. */
  readonly fence?: string | undefined
}

/** `stale`: somebody with a larger token has written already. `missing`: there is no such row. */
export type FencedResult = 'written' | 'stale' | 'missing'

export interface FencedTable {
  /** Writes, unless a holder that came later has written before. Pass the lease, or its token. */
  update(
    key: string | number | bigint,
    lease: bigint | { readonly token: bigint },
    changes: Readonly<Record<string, unknown>>,
  ): Promise<FencedResult>
}

const ATTEMPTS = 20

export function fencedTable(tables: UserTables, { table, key, fence = 'fence' }: FencedOptions): FencedTable {
  const into = quoted(tables, 'table', table)
  const id = quoted(tables, 'key', key)
  const last = quoted(tables, 'fence', fence)

  const write = (
    value: unknown,
    token: string,
    changes: Readonly<Record<string, unknown>>,
  ): Promise<number> => {
    const words = new Wording(tables)
    const set = [...words.assignments(changes), `${last} = ${words.value(token)}`]
    const where = `${id} = ${words.value(tables.key(value))} AND (${last} IS NULL OR ${last} <= ${words.value(token)})`
    return tables.change(`UPDATE ${into} SET ${set.join(', ')} WHERE ${where}`, words.values)
  }

  return {
    async update(value, lease, changes) {
      const token = typeof lease === 'bigint' ? lease : lease.token
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        if ((await write(value, String(token), changes)) > 0) return 'written'
        // None changed can also mean that the row was so already: MySQL does not count those unless told to.
        const [row] = await tables.select(
          `SELECT ${last} AS fence FROM ${into} WHERE ${id} = ${tables.placeholder(1)}${tables.newest}`,
          [tables.key(value)],
        )
        if (row === undefined) return 'missing'
        const seen = row['fence'] === null ? null : BigInt(row['fence'] as string | number | bigint)
        if (seen !== null && seen > token) return 'stale'
        if (seen === token) return 'written'
        // The row came, or came back, between the two statements.
      }
      const message = `The row in ${table} came and went in each of ${ATTEMPTS} attempts. Try again later.`
      throw new ConflictError(message, { table, attempts: ATTEMPTS })
    },
  }
}
