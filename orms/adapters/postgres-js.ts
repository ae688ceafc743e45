import type { SqlRunner } from 'holdfast/postgres'
import type { TransactionSql } from 'postgres'

export const runIn =
  (tx: TransactionSql): SqlRunner =>
  (sql, params) =>
    tx.unsafe(sql, params)
