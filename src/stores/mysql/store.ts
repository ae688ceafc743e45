import type { Capabilities, Store } from '../../core/contract.ts'
import { checkGuard, whileGuarded } from '../sql/guarded.ts'
import type { GuardedLease } from '../sql/guarded.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { SqlStore } from '../sql/store.ts'
import { isFinal, mysqlDriver } from './client.ts'
import type { MysqlClient, MysqlConnection, MysqlDriver, MysqlLink } from './client.ts'
import { MysqlStatements } from './statements.ts'
import type { MysqlStatementOptions } from './statements.ts'

export interface MysqlStoreOptions extends TableOptions {
  /** Create the table when it is not there. Default true; `mysqlSchema()` gives the text to do it by hand. */
  readonly migrate?: boolean
}

/** The connections that a pool gives, or the connection itself. */
export type MysqlTransaction<C> = C extends { getConnection(): Promise<infer T> }
  ? T
  : C extends { promise(): infer P }
    ? MysqlTransaction<P>
    : C

export interface MysqlStore<C> extends Store {
  /**
   * Runs work in a transaction that can commit only if the lease's grant still stands: it begins by locking the lock's
   * own row against change, so that nobody can take the lock before the commit, even if the lease runs out meanwhile.
   * Rejects with a LockLostError, and commits nothing, when the lease is lost already. Keep it short: everything that is
   * asked about this name, renewals too, waits for its end. Do not release the lease inside.
   */
  guarded<T>(lease: GuardedLease, work: (tx: MysqlTransaction<C>) => Promise<T>): Promise<T>
  /** The same check, as the first thing in a transaction of your own. */
  guard(lease: GuardedLease, tx: MysqlTransaction<C>): Promise<void>
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

export interface MysqlInternals extends MysqlStoreOptions, MysqlStatementOptions {
  /** See `SqlStoreParts`; for tests. */
  readonly slack?: number
  readonly close?: () => Promise<void>
}

export class MysqlSqlStore extends SqlStore<MysqlLink> {
  private readonly statements: MysqlStatements
  private readonly driver: MysqlDriver

  constructor(client: MysqlClient, { migrate = true, slack, close, ...table }: MysqlInternals) {
    const statements = new MysqlStatements(table)
    const driver = mysqlDriver(client, close ?? (() => Promise.resolve()))
    super({ kind: 'mysql', capabilities, driver, statements, migrate, isFinal, ...(slack && { slack }) })
    this.statements = statements
    this.driver = driver
  }

  guarded<T>(lease: GuardedLease, work: (tx: MysqlConnection) => Promise<T>): Promise<T> {
    return whileGuarded(lease.name, () =>
      this.driver.transaction(async (tx) => {
        await this.guard(lease, tx)
        return work(tx)
      }),
    )
  }

  async guard(lease: GuardedLease, tx: MysqlConnection): Promise<void> {
    checkGuard(await this.statements.guard(tx, lease.name), lease, this.kind)
  }
}

/** Locks in a table of MySQL (5.7 and later) or MariaDB (10.3 and later). Takes a pool of mysql2; it stays yours. */
export function mysqlStore<C extends MysqlClient>(client: C, options: MysqlStoreOptions = {}): MysqlStore<C> {
  return new MysqlSqlStore(client, options) as unknown as MysqlStore<C>
}

/** The statement that creates the table, for those who run with `migrate: false`. */
export function mysqlSchema(options: TableOptions = {}): string {
  return `${new MysqlStatements(options).schemaText};\n`
}
