import type { SqlEntityManager } from '@mikro-orm/knex'
import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql

export const runIn =
  (em: SqlEntityManager): SqlRunner =>
  (sql, params) =>
    em.execute(sql.replaceAll(/\$\d+/g, '?'), params, sql.startsWith('UPDATE') ? 'run' : 'all')
