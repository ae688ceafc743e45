import type { SqlRunner } from 'holdfast/postgres' // or holdfast/mysql

/** What `prisma.$transaction` gives, of whatever schema. */
interface Transaction {
  $queryRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<unknown>
  $executeRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<number>
}

export const runIn =
  (tx: Transaction): SqlRunner =>
  (sql, params) =>
    /^(SELECT|WITH)|RETURNING/.test(sql)
      ? tx.$queryRawUnsafe(sql, ...params)
      : tx.$executeRawUnsafe(sql, ...params)
