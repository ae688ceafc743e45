import type { StoreEvent, StoreListener, Unknown, Watch } from '../../core/contract.ts'
import { channelOf } from './keys.ts'
import type { Link, SubscriberConnection } from './link.ts'
import type { Requests } from './requests.ts'
import { readMessage } from './wire.ts'

const { setTimeout, clearTimeout, performance } = globalThis

/** How long to wait before connecting again, growing with every failure in a row. */
const RETRY_MS = { shortest: 20, longest: 1_000 }
/** A connection that takes longer is tried elsewhere. */
const CONNECT_MS = 5_000
/** A connection that has been silent for so long is asked whether it is alive, and given as long to answer. */
const SILENCE_MS = 5_000

/**
 * What the scripts publish, for every session of this store: one connection and one channel a session, whatever the
 * number of names. The connection is made with the first session and goes with the last.
 */
export class Watching {
  private readonly link: Link
  private readonly requests: Requests
  private readonly prefix: string
  private readonly read: (message: string) => StoreEvent | undefined
  private readonly sessions = new Map<
    string,
    { readonly session: string; readonly listener: StoreListener }
  >()
  private connection: SubscriberConnection | null = null
  private connecting: Promise<SubscriberConnection> | null = null
  private attempt = 0
  private retry: NodeJS.Timeout | null = null
  private failures = 0
  private heardAt = 0
  private asking = false

  /** `prefix`: of the keys as the server sees them. */
  constructor(requests: Requests, prefix: string, read: typeof readMessage = readMessage) {
    this.read = read
    this.requests = requests
    this.link = requests.link
    this.prefix = prefix
  }

  async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const channel = channelOf(this.prefix, session)
    const entry = { session, listener }
    this.sessions.set(channel, entry)
    const stop = (): void => {
      if (this.sessions.get(channel) !== entry) return
      this.sessions.delete(channel)
      if (this.sessions.size === 0) this.disconnect()
      else this.connection?.unsubscribe(channel).catch(() => {})
    }
    const answer = await this.requests.ask(async () => {
      const connection = this.connection ?? (await this.connect())
      await connection.subscribe([channel])
      return { kind: 'watching', stop } as const
    }, timeout)
    if (answer.kind === 'unknown') stop()
    return answer
  }

  /**
   * Called while somebody waits: a network that swallows packets without a word would otherwise cost every wake-up
   * until the system gives the connection up, which takes it a quarter of an hour.
   */
  checkAlive(): void {
    const { connection } = this
    if (connection === null || this.asking || performance.now() - this.heardAt < SILENCE_MS) return
    this.asking = true
    this.requests
      .ask(() => connection.ping().then(() => ({ kind: 'alive' as const })), SILENCE_MS)
      .then(({ kind }) => {
        this.asking = false
        this.heardAt = performance.now()
        if (kind === 'unknown' && this.connection === connection) {
          connection.close()
          this.lost()
        }
      })
      .catch(() => {})
  }

  close(): void {
    this.sessions.clear()
    this.disconnect()
  }

  private connect(): Promise<SubscriberConnection> {
    if (this.connecting === null) {
      const attempt = ++this.attempt
      const connecting = this.open(attempt).finally(() => {
        if (this.connecting === connecting) this.connecting = null
      })
      this.connecting = connecting
    }
    return this.connecting
  }

  private async open(attempt: number): Promise<SubscriberConnection> {
    const connection: SubscriberConnection = await this.link.subscriber({
      message: (channel, message) => this.told(channel, message),
      end: () => this.connection === connection && this.lost(),
    })
    if (this.sessions.size === 0 || attempt !== this.attempt) {
      connection.close()
      throw new Error('this connection is not wanted any more')
    }
    this.connection = connection
    this.heardAt = performance.now()
    return connection
  }

  private told(channel: string, message: string): void {
    this.heardAt = performance.now()
    const event = this.read(message)
    if (event !== undefined) this.sessions.get(channel)?.listener(event)
  }

  private lost(): void {
    this.connection = null
    if (this.sessions.size > 0) this.retryLater()
  }

  private retryLater(): void {
    const delay = Math.min(RETRY_MS.shortest * 2 ** this.failures++, RETRY_MS.longest)
    if (this.retry !== null) clearTimeout(this.retry)
    this.retry = setTimeout(() => {
      this.retry = null
      this.requests
        .ask(() => this.reconnect(), CONNECT_MS)
        .then((answer) => this.reconnected(answer.kind === 'connected'))
        .catch(() => {})
    }, delay)
    this.retry.unref()
  }

  private async reconnect(): Promise<{ readonly kind: 'connected' }> {
    const connection = this.connection ?? (await this.connect())
    try {
      await connection.subscribe([...this.sessions.keys()])
    } catch (error) {
      connection.close()
      if (this.connection === connection) this.connection = null
      throw error
    }
    return { kind: 'connected' }
  }

  private reconnected(done: boolean): void {
    if (done) {
      this.failures = 0
      for (const { listener } of this.sessions.values()) listener({ kind: 'gap' })
    } else if (this.sessions.size > 0 && this.connection === null) {
      // Whatever still comes of this attempt comes too late.
      this.connecting = null
      this.attempt++
      this.retryLater()
    }
  }

  private disconnect(): void {
    if (this.retry !== null) clearTimeout(this.retry)
    this.retry = null
    this.connection?.close()
    this.connection = null
  }
}
