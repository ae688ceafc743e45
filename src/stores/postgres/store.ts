import { checkOptions } from '../../core/arguments.ts'
import type { Capabilities, Store, StoreListener, Watch } from '../../core/contract.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Call } from '../sql/client.ts'
import { Guard } from '../sql/guarded.ts'
import type { GuardedLease } from '../sql/guarded.ts'
import { guarding, keepGuarding } from '../sql/guarding-claims.ts'
import type { TableOptions } from '../sql/identifiers.ts'
import { linesOn } from '../sql/lines.ts'
import type { Row } from '../sql/row.ts'
import { insideTransaction } from '../sql/runner.ts'
import type { SqlRunner } from '../sql/runner.ts'
import { onOtherServer, outsideTransaction } from '../sql/same-transaction.ts'
import { SqlStore } from '../sql/store.ts'
import type { Tidied, TidyOptions } from '../sql/tidy.ts'
import { isFinal, isPool, PostgresDriver } from './client.ts'
import type { PostgresClient, PostgresLink, PostgresSource } from './client.ts'
import { listenerOn } from './watch.ts'
import { PostgresStatements } from './statements.ts'
import type { PostgresStatementOptions } from './statements.ts'
import { askInTransaction, inTransaction } from './transaction.ts'

export interface PostgresStoreOptions extends TableOptions {
  /** Create the table when it is not there. Default true; `postgresSchema()` gives the text to do it by hand. */
  readonly migrate?: boolean | undefined
  /**
   * Milliseconds for which a name is remembered after its last grant. Default an hour; `Infinity`: for ever. A name that is
   * forgotten gets its next token from the server's clock, which must not be put back by more than this.
   */
  readonly keepIdle?: number | undefined
  /**
   * Have waiters told by LISTEN/NOTIFY, on one connection of the pool that is kept while this process waits for
   * anything. Default true, unless the pool has only one. `false` behind a pooler that gives the connection to others
   * between transactions; statements are then not prepared either.
   */
  readonly listen?: boolean | undefined
}

/** The clients that a pool gives, or the client itself. */
export type PostgresTransaction<C> = C extends {
  connect: { (): Promise<infer T>; (callback: infer _): void }
}
  ? T extends PostgresClient
    ? T
    : C
  : C extends { connect(): Promise<infer T> }
    ? T
    : C

export const POSTGRES_OPTIONS: readonly (keyof PostgresStoreOptions)[] = [
  'table',
  'schema',
  'migrate',
  'keepIdle',
  'listen',
]

export interface PostgresStore<C> extends Store {
  /**
   * Runs work in a transaction that commits only if the lease is held from before its first statement to its last. It
   * begins by locking the claim against its end, so that nobody can take it over before the commit, even if the lease
   * runs out meanwhile; and ends by asking the lease. Rejects with a LockLostError, and commits nothing, when the
   * lease was lost, released or turned into a reader's. Renewals, and everybody else's leases, go on beside it.
   */
  guarded<T>(lease: GuardedLease, work: (tx: PostgresTransaction<C>) => Promise<T>): Promise<T>
  /**
   * The same for a transaction of your own: make it the first thing there, and call `lease.assertHeld()` right before
   * the commit. Takes the client, or a function that runs a statement there, for transactions of an ORM.
   */
  guard(lease: GuardedLease, tx: PostgresTransaction<C> | SqlRunner): Promise<void>
  /** Looks through the whole table, a little at a time, and forgets names that are not in use; see `keepIdle`. */
  tidy(options?: TidyOptions): Promise<Tidied>
}

const CAPABILITIES: Capabilities = {
  queue: true,
  shared: true,
  permits: true,
  fencing: 'monotonic',
  wakeups: 'push',
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

export interface PostgresInternals extends PostgresStoreOptions, PostgresStatementOptions {
  /** See `SqlStoreParts`; for tests. */
  readonly slack?: number
  readonly close?: () => Promise<void>
}

/** When all connections of the pool are in use: one may come back in a moment, or not for long. */
const LOOK_MS = 1000

/** The only connection of a pool, kept for listening, would be missing for everything else. */
const canListen = (source: PostgresSource): boolean => !isPool(source) || source.options?.max !== 1

/** What one store listens to, on a connection that all stores on the pool have in common. */
class Watches {
  private readonly source: PostgresSource
  private readonly stops = new Set<() => void>()
  private closed = false

  constructor(source: PostgresSource) {
    this.source = source
  }

  async begin(session: string, tell: StoreListener, call: Call): Promise<Watch> {
    const watch = await listenerOn(this.source).watch(session, tell, call)
    const stop = (): void => {
      this.stops.delete(stop)
      watch.stop()
    }
    this.stops.add(stop)
    if (!this.closed) return { kind: 'watching', stop }
    stop()
    throw new TimeIsUp()
  }

  close(): void {
    this.closed = true
    for (const stop of this.stops) stop()
  }
}

export class PostgresSqlStore extends SqlStore<PostgresLink> {
  private readonly statements: PostgresStatements
  private readonly driver: PostgresDriver
  private readonly watches: Watches | undefined

  constructor(source: PostgresSource, options: PostgresInternals) {
    const { migrate = true, listen = canListen(source), slack, keepIdle, close, ...table } = options
    const statements = new PostgresStatements({ prepare: options.listen !== false, ...table })
    const driver = new PostgresDriver(source, close ?? (() => Promise.resolve()), listen)
    const watches = listen ? new Watches(source) : undefined
    // The one that listens would hear nothing there, and say nothing either.
    if (listen) driver.onReadOnly = () => listenerOn(source).replace()
    const capabilities: Capabilities = { ...CAPABILITIES, wakeups: listen ? 'push' : 'poll' }
    super({
      kind: 'postgres',
      capabilities,
      driver,
      statements,
      migrate,
      isFinal,
      lines: linesOn(source, JSON.stringify([table, migrate, slack, listen, options.listen])),
      ...(watches && { watch: (session, tell, call) => watches.begin(session, tell, call) }),
      ...(slack && { slack }),
      ...(keepIdle !== undefined && { keepIdle }),
    })
    this.statements = statements
    this.driver = driver
    this.watches = watches
  }

  override async close(): Promise<void> {
    this.watches?.close()
    await super.close()
  }

  async guarded<T>(lease: GuardedLease, work: (tx: PostgresClient) => Promise<T>): Promise<T> {
    const guard = new Guard(lease, this.kind)
    guard.end()
    // What ends the claim from the commit on waits for it.
    return guarding(guard, (beforeCommit) =>
      this.driver.transaction(async (tx) => {
        guard.begin(await this.rowsOf(guard, tx))
        return work(tx)
      }, beforeCommit),
    )
  }

  async guard(lease: GuardedLease, tx: PostgresClient | SqlRunner): Promise<void> {
    const guard = new Guard(lease, this.kind)
    if (typeof tx === 'function') {
      await insideTransaction(tx, async () => this.beginGuard(guard, tx))
      keepGuarding(guard.ids)
      return
    }
    // From here on it is followed what the client is in. What was sent to it before may be on its way still.
    inTransaction(tx)
    await this.beginGuard(guard, tx)
    if (!(inTransaction(tx) ?? (await askInTransaction(tx)))) throw outsideTransaction()
    keepGuarding(guard.ids)
  }

  /** In a transaction that may be anywhere: a copy of the table has the claims, and what is locked there nobody here sees. */
  private async beginGuard(guard: Guard, tx: PostgresClient | SqlRunner): Promise<void> {
    const rows = await this.rowsOf(guard, tx)
    guard.begin(rows)
    if (!this.driver.hasSpare) return
    const ids = guard.idsIn(rows)
    const there = await this.call(LOOK_MS, (connection) => this.statements.guardsThere(connection, ids))
    if (there === false) throw onOtherServer()
  }

  private async rowsOf(guard: Guard, tx: PostgresClient | SqlRunner): Promise<readonly Row[]> {
    const { statements } = this
    // In the transaction it must not be looked for: that may use any schema.
    await this.located(LOOK_MS)
    const known = guard.ids
    const rows = await statements.guard(tx, guard.names, known)
    const ids = guard.idsIn(rows)
    // A lock server has ids of its own: those are to be locked, and what was read before is nothing to go by.
    return ids.every((id) => known.includes(id)) ? rows : statements.guard(tx, guard.names, ids)
  }
}

/** Locks in a table of PostgreSQL (12 and later). Takes a Pool of pg; it stays yours. */
export function postgresStore<C extends PostgresSource>(
  client: C,
  options: PostgresStoreOptions = {},
): PostgresStore<C> {
  checkOptions(options, POSTGRES_OPTIONS, 'table')
  return new PostgresSqlStore(client, options) as unknown as PostgresStore<C>
}

/** The statements that create the table, for those who run with `migrate: false`. */
export function postgresSchema(options: TableOptions = {}): string {
  return `${new PostgresStatements(options).schemaText};\n`
}
