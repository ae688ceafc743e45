import { sql } from 'drizzle-orm'
import type { SQL } from 'drizzle-orm'
import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql

export const runIn =
  (tx: { execute(query: SQL): PromiseLike<unknown> }): SqlRunner =>
  (text, params) => {
    const [first = '', ...rest] = text.split(/\$\d+|\?/)
    const parts = rest.map((part, index) => sql`${sql.param(params[index])}${sql.raw(part)}`)
    return tx.execute(sql.join([sql.raw(first), ...parts]))
  }
