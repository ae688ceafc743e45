import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql
import type { EntityManager } from 'typeorm'

export const runIn =
  (manager: EntityManager): SqlRunner =>
  (sql, params) =>
    manager.query(sql, params)
