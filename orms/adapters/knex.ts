import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql
import type { Knex } from 'knex'

export const runIn =
  (trx: Knex.Transaction): SqlRunner =>
  (sql, params) =>
    trx.raw(sql.replaceAll(/\$\d+/g, '?'), params)
