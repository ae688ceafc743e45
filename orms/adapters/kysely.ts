import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql
import { CompiledQuery } from 'kysely'
import type { Transaction } from 'kysely'

export const runIn =
  <Tables>(trx: Transaction<Tables>): SqlRunner =>
  (sql, params) =>
    trx.executeQuery(CompiledQuery.raw(sql, params))
