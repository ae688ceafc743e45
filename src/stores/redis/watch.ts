import { backOff } from '../../core/back-off.ts'
import type { StoreEvent, StoreListener, Unknown, Watch } from '../../core/contract.ts'
import { Hearing } from './hearing.ts'
import { channelOf } from './keys.ts'
import { SUBSCRIBER_MS } from './client/driver.ts'
import type { Driver, SubscriberConnection } from './client/driver.ts'
import type { Requests } from './requests.ts'
import { readMessage } from './wire.ts'

const { setTimeout, clearTimeout, performance } = globalThis

/** How long to wait before connecting again, growing with every failure in a row. */
const RETRY_MS = { first: 20, longest: 1_000 }
/** A connection that has been silent for so long is asked whether it still hears. */
const SILENCE_MS = 5_000
/** And any other now and then: what one session hears says nothing of the others. */
const CHECK_EVERY_MS = 15_000
/** A check that takes longer says nothing. */
const CHECK_MS = 2_000

/**
 * What the scripts publish, for every session of this store: one connection and one channel a session, whatever the
 * number of names. The connection is made with the first session and goes with the last. It is used while it hears what the
 * connection for commands says, and otherwise made anew.
 */
export class Watching {
  private readonly driver: Driver
  private readonly requests: Requests
  private readonly prefix: string
  private readonly hearing: Hearing
  private readonly read: (message: string) => StoreEvent | undefined
  private readonly sessions = new Map<
    string,
    { readonly session: string; readonly listener: StoreListener }
  >()
  /** Channels of sessions that the server has not been heard to listen for yet. */
  private readonly joining = new Set<string>()
  private connection: SubscriberConnection | null = null
  private connecting: Promise<SubscriberConnection> | null = null
  /** A subscription for all sessions, while more of them can still join it. */
  private anew: Promise<void> | null = null
  private attempt = 0
  private retry: NodeJS.Timeout | null = null
  private failures = 0
  private heardAt = 0
  private checkedAt = 0
  /** The check that is under way, and whether another one is due after it. */
  private checking: 'no' | 'yes' | 'again' = 'no'
  private stopListening: (() => void) | null = null

  /** `prefix`: of the keys as the server sees them. */
  constructor(requests: Requests, prefix: string, read: typeof readMessage = readMessage) {
    this.read = read
    this.requests = requests
    this.driver = requests.driver
    this.hearing = new Hearing(requests.driver)
    this.prefix = prefix
  }

  async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const channel = channelOf(this.prefix, session)
    const entry = { session, listener }
    this.sessions.set(channel, entry)
    this.joining.add(channel)
    this.stopListening ??= this.driver.onConnectionChange(() => this.check())
    const stop = (): void => {
      if (this.sessions.get(channel) !== entry) return
      this.sessions.delete(channel)
      if (this.sessions.size === 0) this.disconnect()
      else this.connection?.unsubscribe(channel).catch(() => {})
    }
    const answer = await this.requests.ask(async () => {
      const { connection } = this
      if (connection === null) await this.joinAnew()
      else await connection.subscribe([channel])
      return { kind: 'watching', stop } as const
    }, timeout)
    this.joining.delete(channel)
    if (answer.kind === 'unknown') stop()
    return answer
  }

  /**
   * Called while somebody waits: a network that swallows packets without a word would otherwise cost every wake-up
   * until the system gives the connection up, which takes it a quarter of an hour.
   */
  checkAlive(): void {
    const now = performance.now()
    if (now - this.heardAt >= SILENCE_MS || now - this.checkedAt >= CHECK_EVERY_MS) this.check()
  }

  private check(): void {
    const { connection } = this
    const channels = [...this.sessions.keys()].filter((channel) => !this.joining.has(channel))
    if (connection === null || channels.length === 0 || !this.driver.ready()) return
    if (this.checking !== 'no') return void (this.checking = 'again')
    this.checking = 'yes'
    this.checkedAt = performance.now()
    this.requests
      .ask(async () => ({ kind: (await this.hearing.hears(channels)) ? 'hears' : 'deaf' }) as const, CHECK_MS)
      .then(({ kind }) => {
        const again = this.checking === 'again'
        this.checking = 'no'
        this.heardAt = performance.now()
        // What the command connection could not say is not the subscriber's fault, nor that of a session that has gone.
        const same = this.connection === connection && channels.every((channel) => this.sessions.has(channel))
        if (kind === 'deaf' && same) {
          connection.close()
          this.lost()
        } else if (again || (kind === 'deaf' && this.connection === connection)) this.check()
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
    const connection: SubscriberConnection = await this.driver.subscriber({
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
    if (this.hearing.heard(message)) return
    const event = this.read(message)
    if (event !== undefined) this.sessions.get(channel)?.listener(event)
  }

  private lost(): void {
    this.connection = null
    if (this.sessions.size > 0) this.retryLater()
  }

  private retryLater(): void {
    const delay = backOff(this.failures++, RETRY_MS)
    if (this.retry !== null) clearTimeout(this.retry)
    this.retry = setTimeout(() => {
      this.retry = null
      this.requests
        .ask(() => this.reconnect(), SUBSCRIBER_MS)
        .then((answer) => this.reconnected(answer.kind === 'connected'))
        .catch(() => {})
    }, delay)
    this.retry.unref()
  }

  private async reconnect(): Promise<{ readonly kind: 'connected' }> {
    await this.joinAnew()
    return { kind: 'connected' }
  }

  /** Once for all who wait for the connection: each by itself would subscribe to the channels of all of them. */
  private joinAnew(): Promise<void> {
    // Made meanwhile, by somebody who did not wait for the next attempt.
    if (this.connection !== null) return this.subscribeAll(this.connection)
    if (this.anew !== null) return this.anew
    const connected = this.connect().finally(() => {
      // Nobody can join any more.
      if (this.anew === anew) this.anew = null
    })
    const anew: Promise<void> = connected.then((connection) => this.subscribeAll(connection))
    this.anew = anew
    return anew
  }

  /** For all sessions: others may have come while the connection was made, or have had another one before. */
  private async subscribeAll(connection: SubscriberConnection): Promise<void> {
    const channels = [...this.sessions.keys()]
    try {
      if (channels.length === 0) throw new Error('nobody listens any more')
      await connection.subscribe(channels)
      if (!(await this.hearsAll(channels)))
        throw new Error('the connection for wake-ups does not lead to the server that is asked for locks')
    } catch (error) {
      connection.close()
      if (this.connection === connection) this.lost()
      throw error
    }
  }

  /** A session that leaves meanwhile is not heard, and says nothing about the others. */
  private async hearsAll(channels: readonly string[]): Promise<boolean> {
    const here = (): string[] => channels.filter((channel) => this.sessions.has(channel))
    for (let asked = here(); asked.length > 0; asked = here()) {
      if (await this.hearing.hears(asked)) return true
      if (here().length === asked.length) return false
    }
    return true
  }

  private reconnected(done: boolean): void {
    if (done) {
      this.failures = 0
      for (const { listener } of this.sessions.values()) listener({ kind: 'gap' })
    } else if (this.sessions.size > 0 && this.connection === null) {
      // Whatever still comes of this attempt comes too late.
      this.connecting = null
      this.anew = null
      this.attempt++
      if (this.retry === null) this.retryLater()
    }
  }

  private disconnect(): void {
    this.stopListening?.()
    this.stopListening = null
    if (this.retry !== null) clearTimeout(this.retry)
    this.retry = null
    this.connection?.close()
    this.connection = null
  }
}
