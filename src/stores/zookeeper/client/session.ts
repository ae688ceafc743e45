import type { ConnectionOptions } from 'node:tls'
import { backOff } from '../../../core/back-off.ts'
import { Connection } from './connection.ts'
import type { Credentials, Handshake, Limits } from './connection.ts'
import { ZooKeeperError, failedRequest } from './errors.ts'
import type { Mergeable, Written } from './merging.ts'
import { closeSession } from './operations.ts'
import type { Operation } from './operations.ts'
import { Rotation, addressesFrom } from './servers.ts'
import type { ServerAddress } from './servers.ts'
import { clearTimeout, now, setImmediate, setTimeout } from './time.ts'
import { Watches } from './watches.ts'
import type { WatchEvent } from './watches.ts'

/**
 * - `connecting`: no server has taken us yet.
 * - `disconnected`: the connection broke. The session, and what hangs on it, may still live: another server is dialled.
 * - `expired`, `auth-failed`, `closed`: the end.
 */
export type SessionState = 'connecting' | 'connected' | 'disconnected' | 'expired' | 'auth-failed' | 'closed'

export interface AuthInfo {
  readonly scheme: string
  readonly auth: string | Uint8Array
}

export interface SessionSettings {
  readonly servers: readonly ServerAddress[]
  /** Milliseconds that are asked for; the server decides. */
  readonly timeout: number
  readonly tls: ConnectionOptions | undefined
  readonly limits: Limits
  readonly auth: readonly AuthInfo[]
  readonly firstXid: number
  readonly background: boolean
  /** For users who need it sooner: milliseconds after which a session would end that was made for them alone. */
  readonly needed: () => number
}

export interface SessionEvents {
  state(state: SessionState, error: ZooKeeperError | undefined): void
  notified(event: WatchEvent): void
}

const NO_CREDENTIALS: Credentials = { id: 0n, password: Buffer.alloc(16) }
/**
 * A server that was asked and says nothing for this part of the session timeout is left for another one. Who holds locks believes
 * in them for two thirds of the timeout, and renews them every third of that: with the ping that is due by then and the renewal
 * that follows, a quarter leaves time for another server to confirm them.
 */
const SILENCE = 1 / 4
/** Shorter ones are nothing unusual, so that a short session is patient for longer; a third is left for finding another server. */
const USUAL_SILENCE_MS = 500
const LONGEST_SILENCE = 2 / 3
/**
 * A follower passes on to its leader which sessions it heard from, but only with the leader's next ping. Sessions are
 * kept by the leader, so one that is heard often has a leader that knows about it nearly as well as its follower.
 */
const PING_EVERY = 1 / 12
const DIAL_MS = { shortest: 200, longest: 5000 }
const STEADY_MS = 1000
/** How long `close` waits for a server that does not answer. The session then ends by itself. */
const GOODBYE_MS = 2000
const BACK_OFF_MS = { first: 50, longest: 1000 }

/** A session: one id at the ensemble, carried from connection to connection until it is closed or expires. */
export class Session {
  readonly watches: Watches = new Watches()
  state: SessionState = 'connecting'
  credentials: Credentials = NO_CREDENTIALS
  /** Milliseconds, as the server said; what was asked for until then. */
  timeout: number
  /** When the last request left that a server answered: no server counts the session's age from an earlier moment. */
  provenAt = 0
  /** Connections that servers closed instead of resuming the session, since it was last resumed. */
  private refusals = 0
  private readonly settings: SessionSettings
  private readonly events: SessionEvents
  private readonly rotation: Rotation
  private readonly auth: AuthInfo[]
  private connection: Connection | null = null
  private lastZxid = 0n
  /** Dials in a row that led to no connection worth the name. */
  private failures = 0
  private openedAt = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private lastError: ZooKeeperError | undefined
  private wanted: boolean
  private users = 0
  private kept: boolean

  constructor(settings: SessionSettings, events: SessionEvents) {
    this.settings = settings
    this.events = events
    this.timeout = settings.timeout
    this.auth = [...settings.auth]
    this.wanted = !settings.background
    this.kept = this.wanted
    this.rotation = new Rotation(settings.servers)
    this.dial()
  }

  get over(): boolean {
    return this.state === 'expired' || this.state === 'auth-failed' || this.state === 'closed'
  }

  /** Fails at once unless connected: a request that waits for a connection could be sent when nobody wants it any more. */
  request<T>(operation: Operation<T>): Promise<T> {
    if (this.state === 'connected' && this.connection !== null) return this.connection.request(operation)
    return Promise.reject(failedRequest(operation, this.failure()))
  }

  /** As `request`, for a write that may share a transaction with others. */
  write(operation: Mergeable): Promise<Written> {
    if (this.state === 'connected' && this.connection !== null) return this.connection.write(operation)
    return Promise.reject(failedRequest(operation, this.failure()))
  }

  addAuth(info: AuthInfo): void {
    this.auth.push(info)
    if (this.state === 'connected') this.connection?.authenticate(info.scheme, bytesOf(info.auth))
  }

  /** Whether an open session keeps the process alive by itself. */
  keep(wanted: boolean): void {
    this.wanted = wanted
    this.keepOrLet()
  }

  /** One user more or less, for whose sake it does in any case. */
  use(change: 1 | -1): void {
    this.users += change
    this.keepOrLet()
  }

  private keepOrLet(): void {
    const kept = this.wanted || this.users > 0
    if (this.kept === kept) return
    this.kept = kept
    if (kept) {
      this.connection?.ref()
      if (this.connection === null) this.timer?.ref()
    } else {
      this.connection?.unref()
      this.timer?.unref()
    }
  }

  /** Ends the session at the server if it can be reached, otherwise it is left to expire. */
  async close(): Promise<void> {
    if (this.over) return
    const { connection } = this
    const ending =
      this.state === 'connected' && connection !== null ? connection.request(closeSession()) : undefined
    this.finish('closed', new ZooKeeperError('CLOSED', 'The client was closed'), ending !== undefined)
    if (ending === undefined || connection === null) return
    const timer = setTimeout(
      () => connection.end(new ZooKeeperError('CLOSED', 'The server did not confirm the end of the session')),
      Math.min(this.timeout / 2, GOODBYE_MS),
    )
    await ending.catch(() => undefined)
    clearTimeout(timer)
    connection.end(new ZooKeeperError('CLOSED', 'The client was closed'))
  }

  private dial(): void {
    const { settings, rotation } = this
    const { limits, tls, firstXid } = settings
    const lookup = addressesFrom(rotation.round)
    const connection = new Connection(
      rotation.take(),
      this.connectionEvents(() => connection),
      { limits, tls, firstXid, lookup },
    )
    this.connection = connection
    if (!this.kept) connection.unref()
    if (this.isTurnedAway) this.lastZxid = 0n
    connection.shakeHands(this.credentials, { timeout: settings.timeout, lastZxid: this.lastZxid })
    const patience = Math.min(Math.max(this.horizon / (2 * rotation.size), DIAL_MS.shortest), DIAL_MS.longest)
    this.after(patience, () => connection.end(silent(connection.server, patience)))
  }

  private connectionEvents(self: () => Connection): ConstructorParameters<typeof Connection>[1] {
    return {
      opened: (handshake) => this.opened(handshake),
      answered: (sentAt, zxid) => {
        if (sentAt > this.provenAt) this.provenAt = sentAt
        if (zxid > this.lastZxid) this.lastZxid = zxid
      },
      notified: (event) => this.events.notified(event),
      authenticated: (errno) => {
        if (errno === 0) return
        const error = new ZooKeeperError('AUTH_FAILED', 'The server refused the credentials')
        this.finish('auth-failed', error)
      },
      closed: (error) => {
        if (this.connection !== self()) return
        if (self().turnedAway) this.refusals++
        this.disconnected(error)
      },
    }
  }

  private opened({ sentAt, timeout, id, password }: Handshake): void {
    const { connection, credentials } = this
    if (connection === null) return
    // A server that hands out a new session instead of resuming ours has forgotten all that hung on the old one.
    if (timeout <= 0 || (credentials.id !== 0n && id !== credentials.id)) {
      return this.finish('expired', new ZooKeeperError('SESSION_EXPIRED', 'The session has expired'))
    }
    this.credentials = { id, password }
    this.refusals = 0
    this.timeout = timeout
    this.provenAt = sentAt
    this.openedAt = now()
    // Rights first, then the watches, and only then requests that may need either.
    for (const info of this.auth) connection.authenticate(info.scheme, bytesOf(info.auth))
    const { request } = this.settings.limits
    for (const message of this.watches.restore(this.lastZxid, request)) connection.setWatches(message)
    this.watch(connection)
    this.become('connected', undefined)
  }

  /** Somebody needs it sooner than was known when the next look was planned. */
  hurry(): void {
    if (this.state === 'connected' && this.connection !== null) this.watch(this.connection)
  }

  /** Keeps the session alive, and ends a connection that has gone silent. */
  private watch(connection: Connection): void {
    const every = this.horizon * PING_EVERY
    const idle = now() - connection.sentAt
    const due = idle >= every - 1
    if (due) connection.ping()
    const next = Math.min(due ? every : every - idle, this.patience - connection.silence)
    this.after(Math.max(1, next), () => this.listen(connection, false), true)
  }

  /** The session may last far longer than what hangs on it: servers have a shortest one, and a user a client of his own. */
  private get horizon(): number {
    return Math.min(this.timeout, this.settings.needed())
  }

  /** For how long a server may be silent. */
  private get patience(): number {
    const { horizon } = this
    const least = Math.min(USUAL_SILENCE_MS, horizon * (LONGEST_SILENCE - PING_EVERY))
    return Math.max(horizon * SILENCE, least)
  }

  private listen(connection: Connection, again: boolean): void {
    if (this.connection !== connection) return
    const { silence, stall } = connection
    if (silence < this.patience && stall < this.horizon * LONGEST_SILENCE) return this.watch(connection)
    // After a blocked event loop the timer comes before the data that waits in the socket: let those be read first.
    if (again) connection.end(silent(connection.server, stall))
    else setImmediate(() => setImmediate(() => this.listen(connection, true)))
  }

  private disconnected(error: ZooKeeperError): void {
    this.connection = null
    if (this.over) return
    this.lastError = error
    clearTimeout(this.timer)
    const wasConnected = this.state === 'connected'
    // A server that takes us and drops us at once must not be asked in a tight loop.
    if (wasConnected && now() - this.openedAt > STEADY_MS) this.failures = 0
    else this.failures++
    // Each server once without delay; after a vain round, slower and slower.
    const rounds = Math.floor(this.failures / this.rotation.size)
    const pause = rounds === 0 ? 0 : backOff(rounds - 1, BACK_OFF_MS, Math.random())
    this.after(pause, () => this.dial())
    if (wasConnected) this.become('disconnected', error)
    // Whoever waits for the first connection learns after each round in vain why there is none.
    else if (this.state === 'connecting' && this.failures % this.rotation.size === 0)
      this.events.state('connecting', error)
  }

  /**
   * No server takes the session up. Those without a quorum do not either, and there it lives on; but servers whose data were
   * lost, or restored from a copy, have seen less than we have, and never will. Asked by somebody who has seen nothing, they
   * say what has become of the session. By then nothing is believed that hung on it.
   */
  private get isTurnedAway(): boolean {
    const { credentials, provenAt, timeout, refusals, rotation } = this
    return credentials.id !== 0n && refusals >= 2 * rotation.size && now() > provenAt + timeout
  }

  private failure(): ZooKeeperError {
    if (this.lastError !== undefined) return this.lastError
    return new ZooKeeperError('CONNECTION_LOSS', 'Not connected yet')
  }

  private finish(
    state: 'expired' | 'auth-failed' | 'closed',
    error: ZooKeeperError,
    lingering = false,
  ): void {
    if (this.over) return
    clearTimeout(this.timer)
    this.lastError = error
    const { connection } = this
    this.connection = null
    this.become(state, error)
    this.watches.clear()
    if (!lingering) connection?.end(error)
  }

  private become(state: SessionState, error: ZooKeeperError | undefined): void {
    this.state = state
    this.events.state(state, error)
  }

  private after(ms: number, callback: () => void, background = false): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(callback, ms)
    if (background || !this.kept) this.timer.unref()
  }
}

/** What cannot be sent would be left out, and nobody would hear of it. Says nothing of what it is: it may be a password. */
export function checkAuth({ scheme, auth }: AuthInfo): void {
  if (typeof scheme === 'string' && (typeof auth === 'string' || auth instanceof Uint8Array)) return
  throw new ZooKeeperError('BAD_ARGUMENTS', 'auth needs a scheme, and credentials as a text or as bytes')
}

function bytesOf(auth: string | Uint8Array): Uint8Array {
  return typeof auth === 'string' ? Buffer.from(auth) : auth
}

function silent({ host, port }: ServerAddress, ms: number): ZooKeeperError {
  return new ZooKeeperError('CONNECTION_LOSS', `${host}:${port} was silent for ${Math.round(ms)} ms`)
}
