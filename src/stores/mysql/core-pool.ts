import { POOL_ENDED } from '../sql/failure.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Cells } from '../sql/row.ts'
import type { MysqlQuery } from './client.ts'
import { forgetPrepared, isRefused, prepareAfter, preparedOn } from './prepared.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout, clearTimeout } = globalThis

/**
 * The pool with callbacks that is inside each pool of mysql2/promise. What the promises are wrapped in (an emitter for
 * every connection that is lent, a stack trace for every query) costs as much as a tenth of a statement.
 */
export interface CorePool {
  readonly config?: {
    readonly connectionLimit?: number
    readonly connectionConfig?: { readonly database?: unknown }
  }
  /** Those that nobody uses just now, and all; not of every version. */
  readonly _freeConnections?: { readonly length: number }
  readonly _allConnections?: { readonly length: number }
  /** Its owner has called `end`. */
  readonly _closed?: boolean
  getConnection(callback: (error: Error | null, connection: CoreConnection) => void): void
}

/**
 * Values as the driver makes them by itself. `true` would say the same, but to the driver a function of the pool's goes before
 * that, unless it has compiled rows that look alike for another pool before.
 */
export const asItIs: MysqlQuery['typeCast'] = (_, next) => next()

// Said with every statement: the pool's own settings may differ, and would change what the answers look like.
export const AS_IT_IS: Omit<MysqlQuery, 'sql'> = { rowsAsArray: true, nestTables: false, typeCast: asItIs }

type Callback = (error: Error | null, result: unknown) => void

export interface CoreConnection {
  query(sql: MysqlQuery | string, callback: Callback): unknown
  readonly threadId?: unknown
  prepare(sql: string, callback: (error: Error | null, statement: CoreStatement) => void): unknown
  release(): void
  destroy(): void
}

/** A prepared statement of one connection. */
export interface CoreStatement {
  execute(values: readonly Parameter[], callback: Callback): unknown
  close: () => unknown
}

/** What can be sent apart from the statement; see `Letter`. */
export type Parameter = string | number

/** A statement that can go in two ways. */
export interface Letter {
  /** With question marks. */
  readonly sql: string
  /** For the question marks. Texts of letters that every character set has: the connection's may be any. */
  readonly values: readonly Parameter[]
  /** The same with its values inside. */
  readonly text: () => string
}

/** What a borrowed connection is used for. */
export interface LentConnection {
  query(options: MysqlQuery): Promise<readonly [unknown, unknown]>
  /** For statements that return no rows: nothing has to be said about how rows look, which the driver copies. */
  change(sql: string): Promise<readonly [unknown, unknown]>
  /** As `change`. */
  send(letter: Letter): Promise<readonly [unknown, unknown]>
  release(): void
  /** Closes it, with no statement under way. */
  close(): void
  destroy(): void
}

export function corePool(source: object): CorePool | undefined {
  if (!('getConnection' in source) || !('pool' in source)) return undefined
  const { pool } = source
  const fits = typeof pool === 'object' && pool !== null && 'getConnection' in pool
  return fits ? (pool as CorePool) : undefined
}

export function coreConnection(pool: CorePool): Promise<LentConnection> {
  if (pool._closed === true) return Promise.reject(POOL_ENDED)
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error !== null && error !== undefined) reject(error)
      else resolve(new Lent(connection, pool))
    })
  })
}

/** The driver tells nobody that no answer will come from a connection that was destroyed. */
export class Answers {
  private last: ((error: Error) => void) | undefined

  /** The answer to a statement. One is under way at a time. */
  of(ask: (callback: Callback) => unknown): Promise<readonly [unknown, unknown]> {
    return new Promise((resolve, reject) => {
      this.last = reject
      ask((error, result) => {
        if (error !== null && error !== undefined) reject(error)
        else resolve([result, undefined])
      })
    })
  }

  giveUp(): void {
    this.last?.(new TimeIsUp())
  }
}

const LOOKS = 7
const LOOK_MS = 100
/** A look at a connection that leads nowhere, as that of which it is to find out may, too. */
const LATE_MS = 5000

class Lent implements LentConnection {
  private readonly connection: CoreConnection
  private readonly pool: CorePool
  private readonly answers = new Answers()

  constructor(connection: CoreConnection, pool: CorePool) {
    this.connection = connection
    this.pool = pool
  }

  query(options: MysqlQuery): Promise<readonly [unknown, unknown]> {
    return this.answers.of((callback) => this.connection.query(options, callback))
  }

  change(sql: string): Promise<readonly [unknown, unknown]> {
    return this.answers.of((callback) => this.connection.query(sql, callback))
  }

  send(letter: Letter): Promise<readonly [unknown, unknown]> {
    const { connection } = this
    const { sql, values, text } = letter
    const prepared = preparedOn(connection, sql)
    if (prepared !== undefined) {
      return this.answers
        .of((callback) => prepared.execute(values, callback))
        .catch((error: unknown) => {
          if (!isRefused(error)) throw error
          forgetPrepared(connection, sql)
          return this.change(text())
        })
    }
    const answer = this.change(text())
    prepareAfter(connection, sql)
    return answer
  }

  release(): void {
    this.connection.release()
  }

  close(): void {
    this.connection.destroy()
  }

  destroy(): void {
    const { threadId } = this.connection
    this.connection.destroy()
    this.answers.giveUp()
    if (typeof threadId === 'number') stop(this.pool, threadId)
  }
}

/** Threads of connections that were destroyed, each with how often it was looked for. */
const stopping = new WeakMap<CorePool, Map<number, number>>()

/**
 * A connection that is only closed lives on at the server for as long as its statement waits for a row, with all it has
 * locked. Only a statement on a table of locks is stopped: behind a balancer the number may be another server's. What goes
 * wrong with it is nobody's. One look for all of them: those who renew need the pool's connections, too.
 */
function stop(pool: CorePool, threadId: number): void {
  const threads = stopping.get(pool)
  if (threads !== undefined) return void threads.set(threadId, 0)
  const first = new Map([[threadId, 0]])
  stopping.set(pool, first)
  look(pool, first)
}

function look(pool: CorePool, threads: Map<number, number>): void {
  const looked = [...threads.keys()]
  const again = (rows: readonly Cells[]): void => {
    const there = new Set(rows.map(([id]) => Number(id)))
    for (const id of looked) {
      const looks = (threads.get(id) ?? 0) + 1
      // It may not have come to the statement yet.
      if (there.has(id) && looks <= LOOKS) threads.set(id, looks)
      else threads.delete(id)
    }
    if (threads.size === 0) return void stopping.delete(pool)
    const looks = Math.min(...threads.values())
    setTimeout(() => look(pool, threads), LOOK_MS * 2 ** Math.max(0, looks - 1)).unref()
  }
  pool.getConnection((error, connection) => {
    if (error !== null && error !== undefined) return again([])
    const sql = `SELECT id, info FROM information_schema.processlist WHERE id IN (${looked.join()}) LIMIT ${looked.length}`
    let late = false
    const timer = setTimeout(() => {
      late = true
      connection.destroy()
      again([])
    }, LATE_MS).unref()
    connection.query({ sql, ...AS_IT_IS }, (failed, found) => {
      clearTimeout(timer)
      if (late) return
      const rows = failed === null && Array.isArray(found) ? (found as Cells[]) : []
      const ours = rows.filter(([, info]) => String(info).includes('expires_us'))
      let left = ours.length
      if (left === 0) connection.release()
      for (const [id] of ours) {
        connection.query(`KILL ${Number(id)}`, () => {
          if (--left === 0) connection.release()
        })
      }
      again(rows.filter((row) => !ours.includes(row)))
    })
  })
}
