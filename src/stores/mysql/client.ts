import { InvalidArgumentError } from '../../core/errors.ts'
import { answered, committed, NoAnswer } from '../sql/answered.ts'
import { CONNECTION_ENDED, codeOf, DatabaseError, isReadOnly, isUnfit } from '../sql/failure.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Call, Driver } from '../sql/client.ts'
import type { Cells } from '../sql/row.ts'
import { Lending } from '../sql/lending.ts'
import { roomIn } from '../sql/room.ts'
import type { Room } from '../sql/room.ts'
import { keeping, outsideTransaction, SAVEPOINT, transactionEnded } from '../sql/same-transaction.ts'
import { insisting, Turns } from '../sql/turns.ts'
import { Answers, AS_IT_IS, coreConnection, corePool } from './core-pool.ts'
import type { CorePool, LentConnection, Letter } from './core-pool.ts'
import { checkClock, DRIFT, isClockDue, isUntouched, noteSent } from './session-clock.ts'

/** What holdfast needs of a connection of mysql2/promise. */
export interface MysqlConnection {
  query(options: MysqlQuery): Promise<readonly [unknown, unknown]>
  beginTransaction(): Promise<unknown>
  commit(): Promise<unknown>
  rollback(): Promise<unknown>
}

export interface MysqlPoolConnection extends MysqlConnection {
  release(): void
  destroy(): void
}

export interface MysqlPool {
  getConnection(): Promise<MysqlPoolConnection>
}

/** A pool or connection of mysql2 with callbacks: `promise()` gives the other kind. */
export interface MysqlCallback<T> {
  promise(): T
}

export type MysqlClient =
  | MysqlPool
  | MysqlConnection
  | MysqlCallback<MysqlPool>
  | MysqlCallback<MysqlConnection>

export interface MysqlQuery {
  readonly sql: string
  readonly rowsAsArray: boolean
  readonly nestTables: false
  readonly typeCast: (field: unknown, next: () => unknown) => unknown
}

export interface MysqlResult {
  readonly rows: readonly Cells[]
  readonly changed: number
  readonly insertId: number
}

/** A borrowed connection. */
export interface MysqlLink {
  run(sql: string): Promise<MysqlResult>
  /** What returns no rows. */
  change(sql: string): Promise<MysqlResult>
  /** As `change`, by number where the connection has prepared it. */
  send(letter: Letter): Promise<MysqlResult>
}

const IN_TRANSACTION = 1

/** Undone as a whole by the server, to be sent again: deadlock, lock wait timeout, MariaDB's snapshot conflict. */
const UNDONE = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CHECKREAD'])

const FINAL = new Set([
  'ER_ACCESS_DENIED_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
  'ER_TABLEACCESS_DENIED_ERROR',
  'ER_COLUMNACCESS_DENIED_ERROR',
  'ER_BAD_DB_ERROR',
  'ER_NO_DB_ERROR',
  'ER_NO_SUCH_TABLE',
  'ER_BAD_FIELD_ERROR',
  'ER_NOT_SUPPORTED_AUTH_MODE',
  'ER_PARSE_ERROR',
  'HANDSHAKE_NO_SSL_SUPPORT',
])

export const isFinal = (code: string): boolean => FINAL.has(code)

/** What clusters of mysql2, and what their `of` gives, have: with promises, and with callbacks. */
const CLUSTER = ['poolCluster', 'poolNamespace', 'of', '_cluster']

/** It has the same names for other things, and fails where nobody can catch it, or after it has written. */
export function refuseMariadb(client: object, argument: string, instead: string): void {
  if ('batch' in client || 'importFile' in client) {
    throw new InvalidArgumentError(
      `What belongs here is of mysql2, and this is of the driver mariadb. ${instead}`,
      {
        argument,
      },
    )
  }
}

export const PASS_FUNCTION = 'Pass a function: (sql, params) => connection.query(sql, params)'

/** Accepts what mysql2 makes, with promises or callbacks. */
export function mysqlDriver(client: MysqlClient, close: () => Promise<void>): MysqlDriver {
  const promised = 'promise' in client && typeof client.promise === 'function' ? client.promise() : client
  refuseMariadb(promised, 'client', 'Make a pool of mysql2 for locks')
  if (CLUSTER.some((property) => property in promised)) {
    throw new InvalidArgumentError(
      'mysqlStore needs a pool, not a cluster of them: each of its servers would give out locks of its own. Make a pool ' +
        'for the one that is written to',
      { argument: 'client' },
    )
  }
  if ('getConnection' in promised) return new MysqlDriver(promised, close)
  if ('query' in promised) return new MysqlDriver(promised, close)
  throw new InvalidArgumentError('mysqlStore needs a pool or a connection of mysql2', { argument: 'client' })
}

export class MysqlDriver implements Driver<MysqlLink> {
  /** What the stores on one pool have in common. */
  readonly pool: object
  private readonly source: MysqlPool | MysqlConnection
  private readonly core: CorePool | undefined
  private readonly turns = new Turns()
  private readonly room: Room
  readonly close: () => Promise<void>

  constructor(source: MysqlPool | MysqlConnection, close: () => Promise<void>) {
    this.source = source
    this.core = corePool(source)
    this.close = close
    this.pool = this.core ?? source
    this.room = roomIn(this.pool, this.core?.config?.connectionLimit ?? Infinity, 1)
  }

  /** What connections use when they are made, as far as is known. Somebody may have sent one `USE` since. */
  get database(): string | undefined {
    const made = this.core?.config?.connectionConfig
    return typeof made?.database === 'string' && made.database !== '' ? made.database : undefined
  }

  /** Whether a connection can be had at once, as far as is known. */
  get hasSpare(): boolean {
    const { config, _freeConnections: free, _allConnections: all } = this.core ?? {}
    if (free === undefined || all === undefined) return 'getConnection' in this.source
    return free.length > 0 || all.length < (config?.connectionLimit ?? Infinity)
  }

  async borrow<T>(call: Call, work: (connection: MysqlLink) => Promise<T>): Promise<T> {
    const { source } = this
    if (!('getConnection' in source)) {
      return this.turns.take(call, async () => {
        if (isOver(source)) throw CONNECTION_ENDED
        // Its owner may be in the middle of a transaction there, which is not ours to end: look before anything is done.
        await refuseTransaction(source)
        const connection = new Promised(source)
        if (isClockDue(connection)) await refuseSetClock(connection)
        return work(new Connection(connection, call, true)).finally(() => noteSent(connection))
      })
    }
    return this.room.call(call, () => this.lendFor(source, call, work))
  }

  private async lendFor<T>(
    source: MysqlPool,
    call: Call,
    work: (connection: MysqlLink) => Promise<T>,
  ): Promise<T> {
    const connection = await (this.core === undefined
      ? source.getConnection().then((lent) => new Promised(lent))
      : coreConnection(this.core))
    if (call.expired) {
      connection.release()
      throw new TimeIsUp()
    }
    const lending = new Lending(call, {
      back: () => {
        noteSent(connection)
        connection.release()
      },
      destroy: () => connection.destroy(),
    })
    let useless = false
    try {
      const ours = isUntouched(connection)
      if (isClockDue(connection)) await call.send(() => refuseSetClock(connection))
      return await work(new Connection(connection, call, ours))
    } catch (error) {
      // The next one to get it would hear the same: a rollback does not end what autocommit, or XA, has begun.
      useless = isUnfit(error) || error instanceof InTransaction
      throw error
    } finally {
      lending.end(useless ? () => connection.close() : undefined)
    }
  }

  /** Runs work in a transaction of its own: committed when it resolves and `check` finds nothing wrong, else rolled back. */
  async transaction<T>(work: (connection: MysqlConnection) => Promise<T>, check: () => void): Promise<T> {
    const { source } = this
    if (!('getConnection' in source)) {
      throw new InvalidArgumentError(
        'A guarded transaction needs a pool: on a single connection it would keep the lock from being renewed',
        { argument: 'client' },
      )
    }
    return this.room.use(() => this.inTransaction(source, work, check))
  }

  private async inTransaction<T>(
    source: MysqlPool,
    work: (connection: MysqlConnection) => Promise<T>,
    check: () => void,
  ): Promise<T> {
    const connection = await source.getConnection()
    let inside = false
    try {
      await answered(begin(connection))
      inside = true
      const result = await keeping(connection, work)
      await answered(connection.query({ sql: `RELEASE SAVEPOINT ${SAVEPOINT}`, ...AS_IT_IS }))
      inside = false
      check()
      await committed(connection.query({ sql: `COMMIT ${ALONE}`, ...AS_IT_IS }))
      connection.release()
      return result
    } catch (error) {
      if (error instanceof NoAnswer) {
        connection.destroy()
        throw error
      }
      const ended = inside && (await answered(isEnded(connection)).catch(() => false))
      // Without an answer to the rollback nobody knows what the connection is in the middle of.
      await answered(rollback(connection)).then(
        () => (isReadOnly(error) ? connection.destroy() : connection.release()),
        () => connection.destroy(),
      )
      // A deadlock that the work tells has undone all of it, which is what whoever starts over has to know.
      throw ended && !tellsOfUndoing(error) ? transactionEnded(error) : error
    }
  }
}

/** A connection that is not known from the inside: everything goes as text. */
class Promised implements LentConnection {
  private readonly connection: MysqlConnection & Partial<MysqlPoolConnection>
  private readonly answers = new Answers()

  constructor(connection: MysqlConnection) {
    this.connection = connection
  }

  query(options: MysqlQuery): Promise<readonly [unknown, unknown]> {
    return this.answers.of((callback) => {
      this.connection.query(options).then(
        ([result]) => callback(null, result),
        (error: Error) => callback(error, undefined),
      )
    })
  }

  change(sql: string): Promise<readonly [unknown, unknown]> {
    return this.query({ sql, ...AS_IT_IS })
  }

  send({ text }: Letter): Promise<readonly [unknown, unknown]> {
    return this.change(text())
  }

  release(): void {
    this.connection.release?.()
  }

  close(): void {
    this.destroy()
  }

  destroy(): void {
    this.connection.destroy?.()
    this.answers.giveUp()
  }
}

class Connection implements MysqlLink {
  private readonly connection: LentConnection
  private readonly call: Call
  /** Known to be in no transaction. Answers with rows do not tell it, and would be an old picture there. */
  private clean: boolean

  constructor(connection: LentConnection, call: Call, clean: boolean) {
    this.connection = connection
    this.call = call
    this.clean = clean
  }

  async run(sql: string): Promise<MysqlResult> {
    if (!this.clean) await this.told(() => refuseTransaction(this.connection))
    return insisting(this.call, isUndone, () => send(this.connection, sql))
  }

  change(sql: string): Promise<MysqlResult> {
    const { connection } = this
    return this.told(async () => resultOf(connection, await connection.change(sql)))
  }

  send(letter: Letter): Promise<MysqlResult> {
    const { connection } = this
    return this.told(async () => resultOf(connection, await connection.send(letter)))
  }

  private async told<T>(ask: () => Promise<T>): Promise<T> {
    const result = await insisting(this.call, isUndone, ask)
    this.clean = true
    return result
  }
}

/** Whatever `completion_type` says: by itself the end may begin another transaction, or close the connection. */
const ALONE = 'AND NO CHAIN NO RELEASE'

const rollback = (connection: Queries): Promise<unknown> =>
  connection.query({ sql: `ROLLBACK ${ALONE}`, ...AS_IT_IS })

async function begin(connection: MysqlConnection): Promise<void> {
  // Somebody may have given it back in the middle of a transaction, which BEGIN would commit.
  await rollback(connection)
  await connection.beginTransaction()
  await connection.query({ sql: `SAVEPOINT ${SAVEPOINT}`, ...AS_IT_IS })
}

/** It takes no statements any more, as far as it tells: its owner has ended it, or the server has. */
function isOver(source: MysqlConnection): boolean {
  const { connection = {} } = source as { readonly connection?: object }
  const { addCommand, _addCommandClosedState: refuses } = connection as Record<string, unknown>
  return addCommand !== undefined && addCommand === refuses
}

/** Whether the transaction that we began is not there any more. */
async function isEnded(connection: Queries): Promise<boolean> {
  try {
    await connection.query({ sql: `ROLLBACK TO SAVEPOINT ${SAVEPOINT}`, ...AS_IT_IS })
    return false
  } catch (error) {
    return codeOf(error) === 'ER_SP_DOES_NOT_EXIST'
  }
}

/** Also one that is the cause of the user's own error. */
function tellsOfUndoing(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  return isUndone(error) || ('cause' in error && error.cause !== error && isUndone(error.cause))
}

const isUndone = (error: unknown): boolean => UNDONE.has(codeOf(error))

type Queries = Pick<MysqlConnection, 'query'>

/** The statement belongs to the transaction that it is sent in. */
export const INSIDE: unique symbol = Symbol('inside a transaction')

/** One statement, with its values inside: see `literal`. */
export async function send(connection: Queries, sql: string, where?: typeof INSIDE): Promise<MysqlResult> {
  return resultOf(connection, await connection.query({ sql, ...AS_IT_IS }), where)
}

function resultOf(
  connection: Queries,
  [result]: readonly [unknown, unknown],
  where?: typeof INSIDE,
): MysqlResult | Promise<MysqlResult> {
  if (Array.isArray(result)) return { rows: result as Cells[], changed: 0, insertId: 0 }
  const { affectedRows, insertId, serverStatus } = result as Record<string, unknown>
  if (where !== INSIDE && (Number(serverStatus) & IN_TRANSACTION) !== 0) return refuse(connection)
  return { rows: [], changed: Number(affectedRows), insertId: Number(insertId) }
}

/** Somebody gave a connection back to the pool in the middle of a transaction: what was done there must not stay. */
async function refuse(connection: Queries): Promise<never> {
  await rollback(connection).catch(() => {})
  throw new InTransaction()
}

/** For a statement of the user's transaction, after which it must be in one still. */
export async function requireTransaction(connection: Queries): Promise<void> {
  const [result] = await connection.query({ sql: 'DO 0', ...AS_IT_IS })
  const { serverStatus } = result as Record<string, unknown>
  if ((Number(serverStatus) & IN_TRANSACTION) === 0) throw outsideTransaction()
}

const AUTOCOMMIT = 2

/** The answer to a statement that does nothing tells what the connection is in. */
async function refuseTransaction(connection: Queries): Promise<void> {
  const [result] = await connection.query({ sql: 'DO 0', ...AS_IT_IS })
  if (isInTransaction(result as object)) throw new InTransaction()
}

function refuseSetClock(connection: LentConnection): Promise<void> {
  return checkClock(connection, async () => {
    const [rows] = await connection.query({ sql: DRIFT, ...AS_IT_IS })
    return Number((rows as Cells[])[0]?.[0])
  })
}

/** What the answer to a statement says; with autocommit off, the next statement begins one. */
export function isInTransaction(result: object): boolean {
  const status = Number((result as Record<string, unknown>)['serverStatus'])
  return (status & IN_TRANSACTION) !== 0 || (status & AUTOCOMMIT) === 0
}

class InTransaction extends DatabaseError {
  constructor() {
    super(
      'The connection is in a transaction or has autocommit off: a lock taken there would be nobody’s until the ' +
        'commit. Give holdfast a pool with autocommit on',
      'HOLDFAST_AUTOCOMMIT',
    )
  }
}
