import { checkOptions } from '../../core/arguments.ts'
import type { Capabilities, Store } from '../../core/contract.ts'
import { Guard } from '../sql/guarded.ts'
import type { GuardedLease } from '../sql/guarded.ts'
import { guarding, keepGuarding } from '../sql/guarding-claims.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { linesOn } from '../sql/lines.ts'
import type { Row } from '../sql/row.ts'
import { insideTransaction } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { SqlStore } from '../sql/store.ts'
import type { Tidied, TidyOptions } from '../sql/tidy.ts'
import { isFinal, mysqlDriver, PASS_FUNCTION, refuseMariadb, requireTransaction } from './client.ts'
import type { MysqlClient, MysqlConnection, MysqlDriver, MysqlLink } from './client.ts'
import { MysqlStatements } from './statements.ts'
import type { Elsewhere, MysqlStatementOptions } from './statements.ts'

export interface MysqlStoreOptions extends TableOptions {
  /** Create the table when it is not there. Default true; `mysqlSchema()` gives the text to do it by hand. */
  readonly migrate?: boolean | undefined
  /**
   * Milliseconds for which a name is remembered after its last grant. Default an hour; `Infinity`: for ever. A name that is
   * forgotten gets its next token from the server's clock, which must not be put back by more than this.
   */
  readonly keepIdle?: number | undefined
}

/** The connections that a pool gives, or the connection itself. */
export type MysqlTransaction<C> = C extends { getConnection(): Promise<infer T> }
  ? T
  : C extends { promise(): infer P }
    ? MysqlTransaction<P>
    : C

export const MYSQL_OPTIONS: readonly (keyof MysqlStoreOptions)[] = ['table', 'schema', 'migrate', 'keepIdle']

export interface MysqlStore<C> extends Store {
  /**
   * Runs work in a transaction that commits only if the lease is held from before its first statement to its last. It
   * begins by locking the claim against its end, so that nobody can take it over before the commit, even if the lease
   * runs out meanwhile; and ends by asking the lease. Rejects with a LockLostError, and commits nothing, when the
   * lease was lost, released or turned into a reader's. Renewals, and everybody else's leases, go on beside it.
   */
  guarded<T>(lease: GuardedLease, work: (tx: MysqlTransaction<C>) => Promise<T>): Promise<T>
  /**
   * The same for a transaction of your own: make it the first thing there, and call `lease.assertHeld()` right before
   * the commit. Takes the connection, or a function that runs a statement there, for transactions of an ORM.
   */
  guard(lease: GuardedLease, tx: MysqlTransaction<C> | SqlRunner): Promise<void>
  /** Looks through the whole table, a little at a time, and forgets names that are not in use; see `keepIdle`. */
  tidy(options?: TidyOptions): Promise<Tidied>
}

const capabilities: Capabilities = {
  queue: true,
  shared: true,
  permits: true,
  fencing: 'monotonic',
  wakeups: 'poll',
  reach: 'network',
  minTtl: 1,
  maxTtl: 2 ** 31 - 1,
  earlyExpiry: 0,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'holds',
    storeRestart: 'holds',
    failover: 'fenced',
    storeClockJump: 'fenced',
  },
}

const MAKE_MS = 1000
/** When all connections of the pool are in use: one may come back in a moment, or not for long. */
const BUSY_MS = 50

export interface MysqlInternals extends MysqlStoreOptions, MysqlStatementOptions {
  /** See `SqlStoreParts`; for tests. */
  readonly slack?: number
  readonly close?: () => Promise<void>
}

export class MysqlSqlStore extends SqlStore<MysqlLink> {
  private readonly statements: MysqlStatements
  private readonly driver: MysqlDriver

  constructor(client: MysqlClient, { migrate = true, slack, keepIdle, close, ...table }: MysqlInternals) {
    const driver = mysqlDriver(client, close ?? (() => Promise.resolve()))
    const statements = new MysqlStatements({ database: driver.database, ...table })
    super({
      kind: 'mysql',
      capabilities,
      driver,
      statements,
      migrate,
      isFinal,
      lines: linesOn(driver.pool, JSON.stringify([table, migrate, slack])),
      ...(slack && { slack }),
      ...(keepIdle !== undefined && { keepIdle }),
    })
    this.statements = statements
    this.driver = driver
  }

  async guarded<T>(lease: GuardedLease, work: (tx: MysqlConnection) => Promise<T>): Promise<T> {
    const guard = new Guard(lease, this.kind)
    guard.end()
    await this.makeGuards(guard)
    // What ends the claim from the commit on waits for it.
    return guarding(guard, (beforeCommit) =>
      this.driver.transaction(async (tx) => {
        guard.begin(await this.rowsOf(guard, tx))
        return work(tx)
      }, beforeCommit),
    )
  }

  async guard(lease: GuardedLease, tx: MysqlConnection | SqlRunner): Promise<void> {
    const guard = new Guard(lease, this.kind)
    if (typeof tx === 'function') {
      await insideTransaction(tx, async () => guard.begin(await this.rowsOf(guard, tx)))
    } else {
      refuseMariadb(tx, 'tx', PASS_FUNCTION)
      guard.begin(await this.rowsOf(guard, tx))
      await requireTransaction(tx)
    }
    keepGuarding(guard.ids)
  }

  /** On another connection: what is made inside of the transaction is the others' to wait for until it ends. */
  private async makeGuards({ names }: Guard, limit: number = MAKE_MS): Promise<boolean> {
    if (this.statements.knowGuards(names)) return true
    // Without an answer (all connections may be in use) it is made inside.
    await this.call(limit, (connection) => this.statements.makeGuards(connection, names))
    return this.statements.knowGuards(names)
  }

  private async rowsOf(guard: Guard, tx: MysqlConnection | SqlRunner): Promise<readonly Row[]> {
    const { statements } = this
    const made = await this.makeGuards(guard, this.patience)
    const elsewhere: Elsewhere = (names) => this.readElsewhere(names)
    // To look for what may not be there would lock the gap: two that look, and then both make something in it, are a deadlock.
    const rows = made ? await statements.guard(tx, guard, elsewhere) : undefined
    return rows ?? statements.guardNew(tx, guard, elsewhere)
  }

  /** Nobody can end the claims any more: what another connection sees of them now is true until the commit. */
  private async readElsewhere(names: readonly string[]): Promise<readonly Row[] | undefined> {
    const rows = await this.call(this.patience, (connection) => this.statements.read(connection, names))
    return 'kind' in rows ? undefined : rows
  }

  /** Inside of a transaction: those that have all the pool's connections may each wait for another one here. */
  private get patience(): number {
    return this.driver.hasSpare ? MAKE_MS : BUSY_MS
  }
}

/** Locks in a table of MySQL (5.7 and later) or MariaDB (10.3 and later). Takes a pool of mysql2; it stays yours. */
export function mysqlStore<C extends MysqlClient>(client: C, options: MysqlStoreOptions = {}): MysqlStore<C> {
  checkOptions(options, MYSQL_OPTIONS, 'table')
  return new MysqlSqlStore(client, options) as unknown as MysqlStore<C>
}

/** The statement that creates the table, for those who run with `migrate: false`. */
export function mysqlSchema(options: TableOptions = {}): string {
  return `${new MysqlStatements(options).schemaText};\n`
}
