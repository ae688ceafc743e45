import { checkOptions } from '../../core/arguments.ts'
import { backOff } from '../../core/back-off.ts'
import type { Capabilities, RenewAnswer, RenewRequest, Store } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { Guard } from '../sql/guarded.ts'
import type { GuardedLease } from '../sql/guarded.ts'
import type { Row } from '../sql/row.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { outsideTransaction, SAVEPOINT, transactionEnded } from '../sql/same-transaction.ts'
import { SqlStore } from '../sql/store.ts'
import type { Tidied, TidyOptions } from '../sql/tidy.ts'
import { INSIST_MS } from '../sql/user-table.ts'
import { SqliteDriver } from './client.ts'
import type { SqliteDatabase, SqliteLink } from './client.ts'
import { inTransaction } from './connection.ts'
import { isBusy, isFinal, isReading, READING } from './failure.ts'
import { SqliteStatements } from './statements.ts'
import type { SqliteStatementOptions, SqliteTableOptions } from './statements.ts'

export interface SqliteStoreOptions extends SqliteTableOptions {
  /** Create the table when it is not there. Default true; `sqliteSchema()` gives the text to do it by hand. */
  readonly migrate?: boolean | undefined
  /**
   * Milliseconds for which a name is remembered after its last grant. Default an hour; `Infinity`: for ever. A name that is
   * forgotten gets its next token from the server's clock, which must not be put back by more than this.
   */
  readonly keepIdle?: number | undefined
}

export const SQLITE_OPTIONS: readonly (keyof SqliteStoreOptions)[] = ['table', 'migrate', 'keepIdle']

export interface SqliteStore<D> extends Store {
  /**
   * Runs work in a transaction that commits only if the lease is held, from before its first statement to its last.
   * SQLite lets one connection write at a time, so nobody can take the lock before the commit. The work must not wait
   * for anything: it is given the database, and its transaction ends when it returns. The turn to write is waited for
   * as long as the lease lasts. Rejects with a LockLostError, and commits nothing, when the lease has ended.
   */
  guarded<T>(lease: GuardedLease, work: (database: D) => T): Promise<T>
  /**
   * The same check for a transaction of your own on this database, which must be open. Call it first, and again
   * right before the commit. With a function that runs a statement there, for transactions of an ORM, it is to be awaited.
   */
  guard(lease: GuardedLease, database: D): void
  guard(lease: GuardedLease, run: SqlRunner): Promise<void>
  /** Looks through the whole table, a little at a time, and forgets names that are not in use; see `keepIdle`. */
  tidy(options?: TidyOptions): Promise<Tidied>
}

const PAUSE_MS = { first: 1, longest: 32 }

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
  /** Closes the database with the store. */
  readonly close?: () => void
}

export class SqliteSqlStore extends SqlStore<SqliteLink> {
  private readonly statements: SqliteStatements
  private readonly driver: SqliteDriver

  constructor(
    database: SqliteDatabase,
    { migrate = true, slack, keepIdle, clock, close, ...table }: SqliteInternals,
  ) {
    const statements = new SqliteStatements(table)
    const driver = new SqliteDriver(database, close)
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
      ...(keepIdle !== undefined && { keepIdle }),
    })
    this.statements = statements
    this.driver = driver
  }

  override renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    // Whoever opens the file now finds none of them there.
    if (this.driver.isFileGone()) return Promise.resolve(requests.map(() => ({ kind: 'lost' })))
    return super.renew(requests, timeout)
  }

  async guarded<T>(lease: GuardedLease, work: (database: SqliteDatabase) => T): Promise<T> {
    const guard = new Guard(lease, this.kind)
    const until = performance.now() + INSIST_MS
    for (let attempt = 0; ; attempt++) {
      if (this.driver.isLong()) await this.driver.turn()
      guard.end()
      const began = this.begin()
      if (began === true) return this.inside(guard, work)
      // Whoever reads may be waiting for this.
      if (isReading(began) && performance.now() > until) throw READING
      await new Promise((resolve) => setTimeout(resolve, Math.random() * backOff(attempt, PAUSE_MS)))
    }
  }

  guard(lease: GuardedLease, database: SqliteDatabase | SqlRunner): void | Promise<void> {
    const guard = new Guard(lease, this.kind)
    if (typeof database === 'function') {
      return requireTransaction(database)
        .then(() => (this.driver.isFileGone() ? [] : this.statements.guardBy(database, guard.names)))
        .then((rows) => guard.begin(rows))
    }
    if (!inTransaction(database)) {
      throw new InvalidArgumentError('guard checks a transaction, and none is open on this database', {
        argument: 'database',
      })
    }
    guard.begin(this.rowsOf(guard, database))
  }

  private rowsOf({ names }: Guard, database: SqliteDatabase): readonly Row[] {
    return this.driver.isFileGone() ? [] : this.statements.guard(database, names)
  }

  /** Whether the right to write could be had, or why not. Not to be waited for inside SQLite: the event loop would stand still. */
  private begin(): true | Error {
    const { database } = this.driver
    if (inTransaction(database)) {
      throw new InvalidArgumentError(
        'The database is in a transaction, in which guarded cannot begin another: use guard(lease, database) inside it',
        { argument: 'database' },
      )
    }
    try {
      // Exclusive: without WAL, too, all waiting is done before the row is looked at, and none at the commit.
      database.exec('BEGIN EXCLUSIVE')
      return true
    } catch (error) {
      if (isBusy(error)) return error as Error
      throw error
    }
  }

  private inside<T>(guard: Guard, work: (database: SqliteDatabase) => T): T {
    const { database } = this.driver
    try {
      database.exec(`SAVEPOINT ${SAVEPOINT}`)
      guard.begin(this.rowsOf(guard, database))
      const result = work(database)
      refuseThenable(result)
      stillInside(database)
      guard.end()
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

// Taken once: a user's fake timers must not make time stand still here.
const { performance, setTimeout } = globalThis

/** Transactions that were begun here only to see whether that is possible: ever, and not over yet. */
const looks = { begun: 0, open: 0 }
const LOOKS = 50

/**
 * SQLite tells only by refusing to begin another one. A refusal counts only if it is not for another look of ours at the same
 * time, which is over in a moment.
 */
async function requireTransaction(run: SqlRunner): Promise<void> {
  for (let attempt = 0; attempt < LOOKS; attempt++) {
    const { begun, open } = looks
    try {
      await run('BEGIN', [])
    } catch (error) {
      if (!saysInside(error)) throw error
      if (open === 0 && begun === looks.begun) return
      await new Promise((resolve) => setTimeout(resolve, attempt))
      continue
    }
    looks.begun += 1
    looks.open += 1
    try {
      await run('ROLLBACK', [])
    } finally {
      looks.open -= 1
    }
    break
  }
  throw outsideTransaction()
}

/** An ORM may have put what SQLite said into an error of its own. */
function saysInside(error: unknown, depth = 5): boolean {
  if (!(error instanceof Error) || depth === 0) return false
  return /within a transaction/i.test(error.message) || saysInside(error.cause, depth - 1)
}

/** The work may have ended the transaction and begun another, or SQLite have rolled it back when its disk was full. */
function stillInside(database: SqliteDatabase): void {
  try {
    database.exec(`RELEASE ${SAVEPOINT}`)
  } catch (error) {
    throw transactionEnded(error)
  }
}

/** A promise, or what becomes one when it is awaited: the query of a query builder, which would run after the commit. */
function refuseThenable(result: unknown): void {
  if (result === null || (typeof result !== 'object' && typeof result !== 'function')) return
  if (typeof (result as { then?: unknown }).then !== 'function') return
  if (result instanceof Promise) result.catch(() => {})
  throw new InvalidArgumentError(
    'A guarded transaction of SQLite must not wait: its work returned a promise, or a query that was not run. Run it ' +
      'inside of the work, at once, and return what it gave',
    { argument: 'work' },
  )
}

/**
 * Locks between the processes of one machine, in a file. Takes a database of node:sqlite (Node 22.13 and later) or
 * better-sqlite3; it stays yours, and should be in WAL mode. Locks are taken on a connection of the store's own to the
 * same file, so that no transaction of yours can undo them; close the store to close it.
 */
export function sqliteStore<D extends SqliteDatabase>(
  database: D,
  options: SqliteStoreOptions = {},
): SqliteStore<D> {
  checkOptions(options, SQLITE_OPTIONS, 'table')
  return new SqliteSqlStore(database, options) as unknown as SqliteStore<D>
}

/** The statement that creates the table, for those who run with `migrate: false`. */
export function sqliteSchema(options: SqliteTableOptions = {}): string {
  return `${new SqliteStatements(options).schemaText};\n`
}
