import type { MysqlQuery } from './client.ts'

/**
 * The pool with callbacks that is inside each pool of mysql2/promise. What the promises are wrapped in (an emitter for
 * every connection that is lent, a stack trace for every query) costs as much as a tenth of a statement.
 */
export interface CorePool {
  getConnection(callback: (error: Error | null, connection: CoreConnection) => void): void
}

interface CoreConnection {
  query(options: MysqlQuery, callback: (error: Error | null, result: unknown) => void): unknown
  release(): void
  destroy(): void
}

/** What a borrowed connection is used for. */
export interface LentConnection {
  query(options: MysqlQuery): Promise<readonly [unknown, unknown]>
  release(): void
  destroy(): void
}

export function corePool(source: object): CorePool | undefined {
  if (!('getConnection' in source) || !('pool' in source)) return undefined
  const { pool } = source
  const fits = typeof pool === 'object' && pool !== null && 'getConnection' in pool
  return fits ? (pool as CorePool) : undefined
}

export function coreConnection(pool: CorePool): Promise<LentConnection> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error !== null && error !== undefined) reject(error)
      else resolve(new Lent(connection))
    })
  })
}

class Lent implements LentConnection {
  private readonly connection: CoreConnection

  constructor(connection: CoreConnection) {
    this.connection = connection
  }

  query(options: MysqlQuery): Promise<readonly [unknown, unknown]> {
    return new Promise((resolve, reject) => {
      this.connection.query(options, (error, result) => {
        if (error !== null && error !== undefined) reject(error)
        else resolve([result, undefined])
      })
    })
  }

  release(): void {
    this.connection.release()
  }

  destroy(): void {
    this.connection.destroy()
  }
}
