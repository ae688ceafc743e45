import { InvalidArgumentError } from '../../core/errors.ts'
import { answered, committed, NoAnswer } from '../sql/answered.ts'
import {
  codeOf,
  CONNECTION_ENDED,
  DatabaseError,
  isReadOnly,
  isSqlState,
  isUnfit,
  POOL_ENDED,
} from '../sql/failure.ts'
import { Call, TimeIsUp } from '../sql/client.ts'
import type { Driver } from '../sql/client.ts'
import type { Cells } from '../sql/row.ts'
import { Lending } from '../sql/lending.ts'
import { roomIn } from '../sql/room.ts'
import type { Room } from '../sql/room.ts'
import { keeping, transactionEnded } from '../sql/same-transaction.ts'
import type { Value } from '../sql/statement.ts'
import { insisting, Turns } from '../sql/turns.ts'
import { cancel } from './cancel.ts'
import { awaitConnect } from './connecting.ts'
import { Exchange, exchanging } from './exchange.ts'
import { askInTransaction, begin, commit, inTransaction, InTransaction } from './transaction.ts'
import { OtherEncoding, RAW, requireUtf8, undo } from './transaction.ts'

/** What holdfast needs of a client of pg. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
  on(event: 'notification', listener: (message: PostgresMessage) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  removeListener(event: string, listener: (message: PostgresMessage) => void): unknown
  removeListener(event: string, listener: () => void): unknown
}

export interface PostgresMessage {
  readonly channel: string
  readonly payload?: string | undefined
}

export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void
}

export interface PostgresPool {
  connect(): Promise<PostgresPoolClient>
  connect(callback: (error: Error | undefined, client: PostgresPoolClient | undefined) => void): void
  readonly totalCount: number
  readonly idleCount?: number
  readonly options?: { readonly max?: number | undefined }
  /** Its owner has called `end`, and waits for the connections that are lent. */
  readonly ending?: boolean
}

/** A pool, or one client that is connected already. */
export type PostgresSource = PostgresPool | PostgresClient

export interface PostgresQuery {
  readonly text: string
  /** Prepared under this name, once for each connection. */
  readonly name?: string | undefined
  readonly values?: unknown[] | undefined
  readonly rowMode?: string | undefined
  readonly types?: unknown
}

export interface PostgresResult {
  readonly rows: readonly Cells[]
  readonly changed: number
}

/** A borrowed connection. */
export interface PostgresLink {
  run(text: string, values: readonly Value[], name?: string): Promise<PostgresResult>
  /** Several statements in one, without values. When they fail, the other one is sent. */
  script(text: string, undo: string): Promise<void>
}

/** Undone as a whole by the server, to be sent again: serialization failure, deadlock, lock not available. */
const UNDONE = new Set(['40001', '40P01', '55P03'])

/** Password or role, no database, no privilege, no table, no column, no such feature, no such letter. */
const FINAL = /^(28...|3D000|42501|42P01|42703|3F000|0A000|22P05)$/

export const isFinal = (code: string): boolean => FINAL.test(code)

export function isPool(source: PostgresSource): source is PostgresPool {
  return 'totalCount' in source
}

const NOT_CONNECTED = new DatabaseError(
  'The client of pg is not connected: await client.connect() before using it',
  'HOLDFAST_NOT_CONNECTED',
)

/** As far as it tells. By itself pg keeps what it is asked before, without end. */
function requireConnected(client: PostgresClient): void {
  const { _connecting, _connected, _ending, _queryable } = client as unknown as Record<string, unknown>
  if (_ending === true || _queryable === false) throw CONNECTION_ENDED
  if (_connecting === false && _connected === false) throw NOT_CONNECTED
}

interface Lent {
  readonly client: PostgresPoolClient
  readonly lending: Lending
}

export class PostgresDriver implements Driver<PostgresLink> {
  private readonly source: PostgresSource
  private readonly turns = new Turns()
  private readonly room: Room
  /** The one that the pool's connections lead to. Each has a table of its own, though it has the same name. */
  private database: string | undefined
  readonly close: () => Promise<void>
  /** A connection led to a server that only reads: others that were made before may, too. */
  onReadOnly: (() => void) | null = null

  constructor(source: PostgresSource, close: () => Promise<void>, listens = false) {
    if (!('query' in source)) {
      throw new InvalidArgumentError('postgresStore needs a Pool or a Client of pg', { argument: 'client' })
    }
    this.source = source
    this.close = close
    const most = isPool(source) ? (source.options?.max ?? Infinity) : 1
    this.room = roomIn(source, most, listens ? 2 : 1)
  }

  /** Whether a connection can be had at once. */
  get hasSpare(): boolean {
    const { source } = this
    if (!isPool(source)) return true
    return (source.idleCount ?? 0) > 0 || source.totalCount < (source.options?.max ?? Infinity)
  }

  async borrow<T>(call: Call, work: (connection: PostgresLink) => Promise<T>): Promise<T> {
    const { source } = this
    if (!isPool(source)) {
      return this.turns.take(call, async () => {
        requireConnected(source)
        if (inTransaction(source) ?? (await askInTransaction(source))) throw new InTransaction()
        await requireUtf8(source)
        return work(new Connection(source, call))
      })
    }
    return this.room.call(call, () => this.lendFor(source, call, work))
  }

  private async lendFor<T>(
    source: PostgresPool,
    call: Call,
    work: (connection: PostgresLink) => Promise<T>,
  ): Promise<T> {
    const { client, lending } = await this.lendClean(source, call)
    let broken = false
    try {
      return await work(new Connection(client, call))
    } catch (error) {
      // Nobody else gets one of which the server says nothing, that leads to where nothing can be written, or that is in the
      // middle of a transaction.
      broken = isUseless(error) || inTransaction(client) === true
      if (broken && codeOf(error) === '') cancelUnanswered(client)
      if (isReadOnly(error)) this.onReadOnly?.()
      throw error
    } finally {
      lending.end(broken ? () => client.release(true) : undefined)
    }
  }

  /**
   * A connection in no transaction. One that was given back in the middle of one, or in another encoding, is nobody's any more:
   * it is closed. If the pool's owner has each begin in another encoding, there is none.
   */
  private async lendClean(pool: PostgresPool, call: Call): Promise<Lent> {
    for (let others = pool.totalCount; ;) {
      const client = await lend(pool)
      const back = (): void => giveBack(client, false)
      const destroy = (): void => {
        cancel(client)
        client.release(true)
      }
      // Also while the server is asked: nobody else would give it back.
      const lending = new Lending(call, { back, destroy })
      let inside: boolean
      try {
        this.requireDatabase(client)
        inside = await call.send(async () => inTransaction(client) ?? (await askInTransaction(client)))
        if (!inside) await call.send(() => requireUtf8(client))
      } catch (error) {
        lending.end(error instanceof TimeIsUp ? back : () => client.release(true))
        if (error instanceof OtherEncoding && others-- > 0) continue
        throw error
      }
      if (!inside) return { client, lending }
      lending.end(() => client.release(true))
    }
  }

  /** As far as the client tells. The pool's owner may have changed its options since. */
  private requireDatabase(client: PostgresClient): void {
    const { database } = client as { database?: unknown }
    if (typeof database !== 'string') return
    this.database ??= database
    if (this.database !== database) throw new OtherDatabase(this.database, database)
  }

  /** Runs work in a transaction of its own: committed when it resolves and `check` finds nothing wrong, else rolled back. */
  async transaction<T>(work: (client: PostgresClient) => Promise<T>, check: () => void): Promise<T> {
    const { source } = this
    if (!isPool(source)) {
      throw new InvalidArgumentError(
        'A guarded transaction needs a Pool: on a single Client it would keep the lock from being renewed',
        { argument: 'client' },
      )
    }
    return this.room.use(() => this.inTransaction(source, work, check))
  }

  private async inTransaction<T>(
    source: PostgresPool,
    work: (client: PostgresClient) => Promise<T>,
    check: () => void,
  ): Promise<T> {
    const { client } = await this.lendClean(source, new Call())
    let inside = true
    try {
      await answered(begin(client))
      const result = await keeping(client, work)
      check()
      inside = false
      await committed(commit(client))
      giveBack(client, false)
      return result
    } catch (error) {
      const how = error instanceof NoAnswer ? 'broken' : await answered(undo(client)).catch(() => 'broken')
      const useless = how === 'broken' || isReadOnly(error)
      if (how === 'broken') cancelUnanswered(client)
      giveBack(client, useless)
      throw inside && how === 'ended' ? transactionEnded(error) : error
    }
  }
}

const gone = (): void => {}

class OtherDatabase extends DatabaseError {
  constructor(first: string, now: string) {
    super(
      `The pool's connections lead to the database "${now}" now, and to "${first}" when locks were first taken there: those ` +
        'would be unknown here. Make another pool for another database, and a store on it',
      'HOLDFAST_DATABASE',
    )
  }
}

function isUseless(error: unknown): boolean {
  // Nothing was sent.
  if (error instanceof TimeIsUp) return false
  return !isSqlState(codeOf(error)) || isUnfit(error)
}

/** The driver gave up by itself (`query_timeout`): the statement is under way, and would live on at the server. */
function cancelUnanswered(client: PostgresClient): void {
  const { connection } = client as { connection?: { stream?: { writable?: unknown } } }
  if (connection?.stream?.writable === true) cancel(client)
}

/**
 * While a connection is lent the pool does not listen to it, and one that breaks then must not end the process. By
 * callback, for a promise comes a moment later than the connection: a server that ends it just then would be heard by
 * nobody.
 */
export function lend(pool: PostgresPool): Promise<PostgresPoolClient> {
  if (pool.ending === true) return Promise.reject(POOL_ENDED)
  return new Promise((resolve, reject) => {
    const arrived = awaitConnect(pool)
    pool.connect((error, client) => {
      arrived()
      if (client === undefined) return reject(error ?? new Error('the pool gave no connection'))
      client.on('error', gone)
      resolve(client)
    })
  })
}

/** One that is thrown away may still say that the server ended it: that must not end the process either. */
export function giveBack(client: PostgresPoolClient, broken: boolean): void {
  if (!broken) client.removeListener('error', gone)
  client.release(broken)
}

class Connection implements PostgresLink {
  private readonly client: PostgresClient
  private readonly call: Call

  constructor(client: PostgresClient, call: Call) {
    this.client = client
    this.call = call
  }

  run(text: string, values: readonly Value[], name?: string): Promise<PostgresResult> {
    return insisting(this.call, isUndone, () => send(this.client, { text, values, name, alone: true }))
  }

  async script(text: string, undo: string): Promise<void> {
    await insisting(this.call, isUndone, () =>
      this.client.query({ text }).catch(async (error: unknown) => {
        await this.client.query({ text: undo }).catch(() => {})
        throw error
      }),
    )
  }
}

const isUndone = (error: unknown): boolean => UNDONE.has(codeOf(error))

interface Sending {
  readonly text: string
  readonly values: readonly Value[]
  readonly name?: string | undefined
  /** It must not be part of a transaction: whoever has the same client may have begun one in between. */
  readonly alone?: true
}

export function send(client: PostgresClient, sending: Sending): Promise<PostgresResult> {
  const quick = exchanging(client)
  if (quick === undefined) return query(client, sending)
  const { text, values, name = '', alone = false } = sending
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, result?: PostgresResult): void => {
      if (result === undefined) reject(error ?? new Error('there was no answer'))
      else if (alone && inTransaction(client) === true) reject(new InTransaction())
      else resolve(result)
    }
    quick.query(new Exchange(text, name, values, done))
  })
}

/** For other clients than pg's own, and for those that send several statements at once. */
async function query(client: PostgresClient, { text, values, name }: Sending): Promise<PostgresResult> {
  const config = { text, name, values: [...values], rowMode: 'array', types: RAW }
  const { rows, rowCount } = await (inBinary(client) ? askForText(client, config) : client.query(config))
  return { rows: rows as Cells[], changed: rowCount ?? 0 }
}

type Answer = Awaited<ReturnType<PostgresClient['query']>>
type Query = new (
  config: PostgresQuery,
  values: undefined,
  done: (error: Error | null, result: Answer) => void,
) => object

interface BinaryClient {
  readonly constructor: { readonly Query: Query }
  query(query: object): unknown
}

function inBinary(client: object): client is BinaryClient {
  const { binary, constructor } = client as { binary?: unknown; constructor?: { Query?: unknown } }
  return binary === true && typeof constructor?.Query === 'function'
}

/** With `binary` on, pg takes the bytes of a number for a text, and most of it is lost. Here it is not to ask for bytes. */
function askForText(client: BinaryClient, config: PostgresQuery): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = new client.constructor.Query(config, undefined, (error, result) => {
      if (error === null) resolve(result)
      else reject(error)
    })
    Object.defineProperty(asked, 'binary', { get: () => false, set: () => {} })
    client.query(asked)
  })
}
