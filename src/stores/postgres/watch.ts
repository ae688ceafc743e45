import { backOff } from '../../core/back-off.ts'
import type { StoreEvent, StoreListener, Watch } from '../../core/contract.ts'
import { DatabaseError } from '../sql/failure.ts'
import { TimeIsUp } from '../sql/client.ts'
import type { Call } from '../sql/client.ts'
import { channelOf, eventOf } from '../sql/returning.ts'
import { isPool, lend } from './client.ts'
import type {
  PostgresClient,
  PostgresMessage,
  PostgresPool,
  PostgresPoolClient,
  PostgresSource,
} from './client.ts'
import { IS_UTF8, OtherEncoding, RAW } from './transaction.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis

const RECONNECT_MS = { first: 50, longest: 2000 }
/** A pool does not tell that it is to end: it is asked. */
const LOOK_MS = 250

/**
 * One connection that listens for all sessions of the process, from the first watch to the end of the last. When it
 * breaks it is replaced, and everybody is told that messages may have been missed.
 */
export class PostgresListener {
  private readonly source: PostgresSource
  private readonly listeners = new Map<string, StoreListener>()
  private client: PostgresClient | null = null
  private connecting: Promise<PostgresClient> | null = null
  private retry: NodeJS.Timeout | null = null
  private look: NodeJS.Timeout | null = null
  private last: Promise<unknown> = Promise.resolve()
  private attempts = 0

  constructor(source: PostgresSource) {
    this.source = source
  }

  async watch(session: string, listener: StoreListener, call: Call): Promise<Watch> {
    const channel = channelOf(session)
    this.listeners.set(channel, listener)
    const stop = (): void => {
      if (!this.listeners.delete(channel)) return
      if (this.listeners.size === 0) this.hangUp()
      else if (this.client !== null) this.say(this.client, `UNLISTEN "${channel}"`).catch(() => {})
    }
    // Whoever gave up waiting for this must not leave a listener behind.
    call.onExpire = stop
    try {
      const client = await this.connect()
      if (call.expired) throw new TimeIsUp()
      // A connection that does not answer is deaf, too, and a firewall that has forgotten it tells nobody.
      call.onExpire = () => {
        stop()
        if (this.client === client) this.replace()
      }
      await this.say(client, `LISTEN "${channel}"`)
      call.onExpire = null
      return { kind: 'watching', stop }
    } catch (error) {
      stop()
      throw error
    }
  }

  /** One after the other: the next major version of pg takes no statement before the last one is over. */
  private say(client: PostgresClient, text: string): Promise<unknown> {
    const said = this.last.then(() => client.query({ text }))
    this.last = said.catch(() => {})
    return said
  }

  private async connect(): Promise<PostgresClient> {
    if (this.client !== null) return this.client
    this.connecting ??= this.open().finally(() => (this.connecting = null))
    return this.connecting
  }

  private async open(): Promise<PostgresClient> {
    const { source } = this
    const client: PostgresClient = isPool(source) ? await lendWriting(source) : source
    client.on('notification', this.told)
    client.on('error', this.broke)
    client.on('end', this.broke)
    if (isPool(source)) {
      keepAlive(client, false)
      this.look = setInterval(() => this.leaveIfEnding(), LOOK_MS)
      this.look.unref()
      onPools.add(this)
      if (onPools.size === 1) process.on('beforeExit', lookAtAll)
    }
    this.client = client
    this.last = Promise.resolve()
    // The pool may have had none for so long that nobody wants it any more.
    if (this.listeners.size === 0) {
      this.hangUp()
      throw new TimeIsUp()
    }
    return client
  }

  /** Listens on another connection: this one may lead to a server at which nothing happens any more. */
  replace(): void {
    if (isPool(this.source)) this.broke()
  }

  /** Whoever ends the pool waits for this connection, maybe with nothing else to do: until it is closed, the process goes on. */
  leaveIfEnding(): void {
    const { client, source } = this
    if (client === null || !isPool(source) || source.ending !== true) return
    keepAlive(client, true)
    this.broke()
  }

  private readonly told = ({ channel, payload }: PostgresMessage): void => {
    const listener = this.listeners.get(channel)
    const event = listener && readEvent(payload)
    if (event !== undefined) listener?.(event)
  }

  private readonly broke = (): void => {
    if (this.client === null) return
    this.hangUp()
    this.reconnectLater()
  }

  private reconnectLater(): void {
    if (this.listeners.size === 0 || this.retry !== null) return
    this.retry = setTimeout(
      () => {
        this.retry = null
        this.relisten().catch(() => this.reconnectLater())
      },
      backOff(this.attempts++, RECONNECT_MS, Math.random()),
    )
    this.retry.unref()
  }

  private async relisten(): Promise<void> {
    if (this.listeners.size === 0) return
    const client = await this.connect()
    const channels = [...this.listeners.keys()]
    try {
      await this.say(client, channels.map((channel) => `LISTEN "${channel}"`).join('; '))
    } catch (error) {
      this.hangUp()
      throw error
    }
    this.attempts = 0
    for (const listener of this.listeners.values()) listener({ kind: 'gap' })
  }

  /** Gives the connection back, without what it listened to. */
  private hangUp(): void {
    const { client } = this
    this.client = null
    if (this.look !== null) clearInterval(this.look)
    this.look = null
    if (onPools.delete(this) && onPools.size === 0) process.removeListener('beforeExit', lookAtAll)
    if (this.retry !== null && this.listeners.size === 0) {
      clearTimeout(this.retry)
      this.retry = null
    }
    if (client === null) return
    client.removeListener('notification', this.told)
    if (!isPool(this.source)) {
      client.removeListener('error', this.broke)
      client.removeListener('end', this.broke)
      return
    }
    // Closed rather than reused: cheaper than to make sure that it listens to nothing any more. Its last words are
    // still heard, so that they end nothing.
    ;(client as PostgresPoolClient).release(true)
  }
}

/** The timer that looks keeps no process alive. One that has come to its end is looked at once more. */
const onPools = new Set<PostgresListener>()
const lookAtAll = (): void => {
  for (const listener of onPools) listener.leaveIfEnding()
}

const ASK_MS = 5000
const ASK =
  `SELECT current_setting('transaction_read_only') AS reads, CASE WHEN now() = statement_timestamp() THEN 1 ELSE 0 END AS alone, ` +
  `${IS_UTF8} AS utf8`

/**
 * A connection to a server that writes, in no transaction of somebody else's: nothing is heard on any other, nor are names
 * understood in another encoding. Those that are something else are closed, as the driver does, until all that the pool had before are gone.
 */
async function lendWriting(pool: PostgresPool): Promise<PostgresPoolClient> {
  for (let others = pool.totalCount; ; others--) {
    const client = await lend(pool)
    let closed = false
    const close = (): void => {
      if (!closed) client.release(true)
      closed = true
    }
    // Whoever waits for this gives up by himself, and cannot give it back.
    const late = setTimeout(close, ASK_MS)
    late.unref()
    let problem: unknown = new DatabaseError('The server only reads, and sends no messages', '25006')
    try {
      const { rows } = await client.query({ text: ASK, types: RAW })
      const { reads, alone, utf8 } = rows[0] as { reads?: unknown; alone?: unknown; utf8?: unknown }
      if (Number(utf8) !== 1) problem = new OtherEncoding()
      else if (!closed && reads !== 'on' && Number(alone) === 1) return client
    } catch (error) {
      problem = error
    } finally {
      clearTimeout(late)
    }
    close()
    if (others <= 0) throw problem
  }
}

const shared = new WeakMap<PostgresSource, PostgresListener>()

/** One for all stores on a pool. */
export function listenerOn(source: PostgresSource): PostgresListener {
  let listener = shared.get(source)
  if (listener === undefined) shared.set(source, (listener = new PostgresListener(source)))
  return listener
}

/** Whoever may connect to the database may say anything on a channel: what is no event of ours means nothing. */
function readEvent(payload = ''): StoreEvent | undefined {
  try {
    return eventOf(payload)
  } catch {
    return undefined
  }
}

/** A connection that only listens must not keep the process from ending. */
function keepAlive(client: PostgresClient, on: boolean): void {
  const { connection } = client as { connection?: { stream?: { ref?: () => void; unref?: () => void } } }
  connection?.stream?.[on ? 'ref' : 'unref']?.()
}
