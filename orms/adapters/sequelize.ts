import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql
import type { Sequelize, Transaction } from 'sequelize'

export const runIn =
  (sequelize: Sequelize, transaction: Transaction): SqlRunner =>
  (sql, params) => {
    let count = 0
    const text = sql.replaceAll('?', () => `$${++count}`)
    return sequelize.query(text, { transaction, ...(params.length > 0 && { bind: params }) })
  }
