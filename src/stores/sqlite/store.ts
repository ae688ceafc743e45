import type { Capabilities, Store } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { checkGuard } from '../sql/guarded.ts'
import type { GuardedLease } from '../sql/guarded.ts'
import { SqlStore } from '../sql/store.ts'
import { isFinal, SqliteDriver } from './client.ts'
import type { SqliteDatabase, SqliteLink } from './client.ts'
import { SqliteStatements } from './statements.ts'
import type { SqliteStatementOptions, SqliteTableOptions } from './statements.ts'

export interface SqliteStoreOptions extends SqliteTableOptions {
  /** Create the table when it is not there. Default true; `sqliteSchema()` gives the text to do it by hand. */
  readonly migrate?: boolean
}

export interface SqliteStore<D> extends Store {
  /**
   * Runs work in a transaction that can commit only if the lease's grant still stands. SQLite lets one process write at
   * a time, so nobody can take the lock before the commit. The work must not wait for anything: it is given the
   * database, and its transaction ends when it returns. Throws a LockLostError, and commits nothing, when the lease is
   * lost already.
   */
  guarded<T>(lease: GuardedLease, work: (database: D) => T): T
}

const capabilities: Capabilities = {
  queue: true,
  shared: true,
  permits: true,
  fencing: 'monotonic',
  wakeups: 'poll',
  reach: 'machine',
  minTtl: 10,
  maxTtl: 2 ** 31 - 1,
  // Its clock counts milliseconds.
  earlyExpiry: 1,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'n/a',
    storeRestart: 'n/a',
    failover: 'n/a',
    storeClockJump: 'fenced',
  },
}

export interface SqliteInternals extends SqliteStoreOptions, SqliteStatementOptions {
  /** See `SqlStoreParts`; for tests. */
  readonly slack?: number
  /** What `now` will say, as far as this process can tell. */
  readonly clock?: () => number
  readonly close?: () => Promise<void>
}

export class SqliteSqlStore extends SqlStore<SqliteLink> {
  private readonly statements: SqliteStatements
  private readonly driver: SqliteDriver

  constructor(database: SqliteDatabase, { migrate = true, slack, clock, close, ...table }: SqliteInternals) {
    const statements = new SqliteStatements(table)
    const driver = new SqliteDriver(database, close ?? (() => Promise.resolve()))
    const atOnce = statements.atOnce(driver, clock)
    super({
      kind: 'sqlite',
      capabilities,
      driver,
      statements,
      atOnce,
      migrate,
      isFinal,
      ...(slack && { slack }),
    })
    this.statements = statements
    this.driver = driver
  }

  guarded<T>(lease: GuardedLease, work: (database: SqliteDatabase) => T): T {
    const { database } = this.driver
    // Immediate: the right to write is had before the row is looked at.
    database.exec('BEGIN IMMEDIATE')
    try {
      checkGuard(this.statements.guard(this.driver, lease.name), lease, this.kind)
      const result = work(database)
      if (result instanceof Promise) {
        result.catch(() => {})
        throw new InvalidArgumentError(
          'A guarded transaction of SQLite must not wait: its work returned a promise',
          {
            argument: 'work',
          },
        )
      }
      database.exec('COMMIT')
      return result
    } catch (error) {
      try {
        database.exec('ROLLBACK')
      } catch {
        // SQLite has rolled back by itself: a full disk, for one, leaves no transaction open.
      }
      throw error
    }
  }
}

/**
 * Locks between the processes of one machine, in a file. Takes a database of node:sqlite (Node 22.13 and later) or
 * better-sqlite3; it stays yours, and should be in WAL mode.
 */
export function sqliteStore<D extends SqliteDatabase>(
  database: D,
  options: SqliteStoreOptions = {},
): SqliteStore<D> {
  return new SqliteSqlStore(database, options) as unknown as SqliteStore<D>
}

/** The statement that creates the table, for those who run with `migrate: false`. */
export function sqliteSchema(options: SqliteTableOptions = {}): string {
  return `${new SqliteStatements(options).schemaText};\n`
}
