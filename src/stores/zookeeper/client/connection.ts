import { connect as connectTcp, isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { ZooKeeperError, failedRequest, refusal } from './errors.ts'
import { FrameCutter } from './frames.ts'
import { JuteReader, JuteWriter, malformed } from './jute.ts'
import { WriteGroup } from './merging.ts'
import type { Mergeable, Written } from './merging.ts'
import type { Operation } from './operations.ts'
import { PendingRequests } from './pending.ts'
import type { Pending } from './pending.ts'
import { OPCODES } from './records.ts'
import type { ServerAddress } from './servers.ts'
import { now, setImmediate } from './time.ts'
import { readEvent } from './watches.ts'
import type { WatchEvent } from './watches.ts'

export interface Limits {
  /** Bytes of one message to the server. A larger one is refused here, because the server would drop the connection. */
  readonly request: number
  /** Bytes of one message from the server. */
  readonly reply: number
}

/** What a session is at the server. `id` 0n: a new one is wanted. */
export interface Credentials {
  readonly id: bigint
  readonly password: Buffer
}

export interface Handshake {
  readonly sentAt: number
  /** 0 or less: the session has expired. */
  readonly timeout: number
  readonly id: bigint
  readonly password: Buffer
}

export interface ConnectionSettings {
  readonly limits: Limits
  readonly tls: ConnectionOptions | undefined
  readonly firstXid: number
  readonly lookup: LookupFunction
}

export interface ConnectionEvents {
  opened(handshake: Handshake): void
  /** The server answered a request that left at `sentAt`. */
  answered(sentAt: number, zxid: bigint): void
  notified(event: WatchEvent): void
  authenticated(errno: number): void
  /** It is over; called once. All requests that were under way have failed by then. */
  closed(error: ZooKeeperError): void
}

const XID = { event: -1, ping: -2, auth: -4, setWatches: -8 }
const LAST_XID = 2 ** 31 - 1

/**
 * One connection to one server, from the dial to the end. Requests are answered in the order in which they were sent; if an
 * answer is out of order nothing on this connection can be trusted any more, and it ends.
 */
export class Connection {
  readonly server: ServerAddress
  private readonly socket: Socket
  private readonly events: ConnectionEvents
  private readonly limits: Limits
  private readonly frames: FrameCutter
  private readonly writer = new JuteWriter()
  private readonly group = new WriteGroup((operation, resolve, reject) =>
    this.send(operation, resolve, reject),
  )
  private readonly pending = new PendingRequests()
  private xid: number
  private open = false
  private over = false
  private flushing = false
  private readonly pings: number[] = []
  private handshakeSentAt = 0
  /** The server took the connection, and closed it without a word. */
  turnedAway = false
  /** When bytes last left, and last came. */
  sentAt: number
  private heardAt: number
  /** When a message was last complete. */
  private messageAt: number

  constructor(
    server: ServerAddress,
    events: ConnectionEvents,
    { limits, tls, firstXid, lookup }: ConnectionSettings,
  ) {
    this.server = server
    this.events = events
    this.limits = limits
    this.xid = firstXid
    this.frames = new FrameCutter(limits.reply)
    this.sentAt = now()
    this.heardAt = this.sentAt
    this.messageAt = this.sentAt
    // The name is looked up at every dial: a server may come back under another address.
    const at = { host: server.host, port: server.port, noDelay: true, lookup }
    this.socket =
      tls === undefined
        ? connectTcp(at)
        : // Not imported: it takes as long to load as everything else here.
          process.getBuiltinModule('node:tls').connect({
            ...at,
            ...(isIP(server.host) === 0 && { servername: server.host }),
            ...tls,
          })
    this.socket.on('data', (chunk: Buffer) => this.received(chunk))
    let reached = false
    this.socket.once(tls === undefined ? 'connect' : 'secureConnect', () => (reached = true))
    const closed = (cause?: NodeJS.ErrnoException): void => {
      if (this.open) return this.end(lost(server, cause))
      // It may be closed before we hear that it was made.
      reached ||= cause?.code === 'EPIPE'
      this.turnedAway = reached && !this.over
      this.end(reached ? turnedAway(server, cause) : unreached(server, cause))
    }
    this.socket.on('error', closed)
    this.socket.on('close', () => closed())
  }

  /** The first message. May be called before the dial is through: the socket keeps it. */
  shakeHands(
    { id, password }: Credentials,
    { timeout, lastZxid }: { timeout: number; lastZxid: bigint },
  ): void {
    const { writer } = this
    writer.begin()
    writer.int(0)
    writer.long(lastZxid)
    writer.int(timeout)
    writer.long(id)
    writer.bytes(password)
    writer.bool(false)
    writer.end()
    this.handshakeSentAt = now()
    this.flush()
  }

  request<T>(operation: Operation<T>): Promise<T> {
    this.group.close()
    return new Promise((resolve, reject) => this.send(operation, resolve, reject))
  }

  /** A write that may share a transaction with others of this turn of the event loop. */
  write(operation: Mergeable): Promise<Written> {
    this.flushSoon()
    return this.group.add(operation)
  }

  ping(): void {
    this.pings.push(now())
    this.encode(XID.ping, { name: 'ping', opcode: OPCODES.ping, write: () => undefined })
  }

  authenticate(scheme: string, auth: Uint8Array): void {
    this.encode(XID.auth, {
      name: 'auth',
      opcode: OPCODES.auth,
      write: (writer) => {
        writer.int(0)
        writer.string(scheme)
        writer.bytes(auth)
      },
    })
  }

  setWatches(message: { readonly opcode: number; write(writer: JuteWriter): void }): void {
    this.encode(XID.setWatches, { name: 'setWatches', ...message })
  }

  ref(): void {
    this.socket.ref()
  }

  unref(): void {
    this.socket.unref()
  }

  /** Milliseconds for which the server has been asked something and nothing was heard of it. */
  get silence(): number {
    return this.waitedSince(this.heardAt)
  }

  /** The same, where a message of which only a part has come is nothing either: its length may be wrong. */
  get stall(): number {
    return this.waitedSince(this.messageAt)
  }

  private waitedSince(sign: number): number {
    const oldest = Math.min(this.pending.first?.sentAt ?? Infinity, this.pings[0] ?? Infinity)
    return oldest === Infinity ? 0 : now() - Math.max(oldest, sign)
  }

  /** Ends it now; what is under way fails. */
  end(error: ZooKeeperError): void {
    if (this.over) return
    this.over = true
    this.open = false
    this.socket.destroy()
    for (const { operation, reject } of this.pending.drain()) reject(failedRequest(operation, error))
    this.group.fail(error)
    this.events.closed(error)
  }

  private send<T>(
    operation: Operation<T>,
    resolve: (value: T) => void,
    reject: (error: ZooKeeperError) => void,
  ): void {
    const xid = this.xid
    const refused = this.encode(xid, operation)
    if (refused !== undefined) return reject(refused)
    this.xid = xid === LAST_XID ? 1 : xid + 1
    this.pending.push({ operation, xid, sentAt: now(), resolve: resolve as Pending['resolve'], reject })
  }

  private encode(
    xid: number,
    operation: Pick<Operation<unknown>, 'name' | 'opcode' | 'path' | 'write'>,
  ): ZooKeeperError | undefined {
    const { writer } = this
    writer.begin()
    try {
      writer.int(xid)
      writer.int(operation.opcode)
      operation.write(writer)
    } catch (cause) {
      writer.undo()
      return new ZooKeeperError('BAD_ARGUMENTS', `${operation.name} has an argument that cannot be sent`, {
        cause,
      })
    }
    const length = writer.end()
    if (length > this.limits.request) {
      writer.undo()
      return new ZooKeeperError(
        'BAD_ARGUMENTS',
        `${operation.name} would take ${length} bytes; the limit for a request is ${this.limits.request}`,
      )
    }
    this.flushSoon()
    return undefined
  }

  /** One write for all that is asked in this turn of the event loop. */
  private flushSoon(): void {
    if (this.flushing) return
    this.flushing = true
    setImmediate(this.flush)
  }

  private readonly flush = (): void => {
    this.group.close()
    this.flushing = false
    if (this.over || this.writer.pending === 0) return
    this.sentAt = now()
    this.socket.write(this.writer.take())
  }

  private received(chunk: Buffer): void {
    if (this.over) return
    this.heardAt = now()
    try {
      this.frames.push(chunk, (buffer, start, end) => {
        this.messageAt = this.heardAt
        if (!this.over) this.frame(new JuteReader(buffer, start, end))
      })
    } catch (error) {
      this.end(error instanceof ZooKeeperError ? error : malformed(String(error)))
    }
  }

  private frame(reader: JuteReader): void {
    if (!this.open) return this.greeted(reader)
    const xid = reader.int()
    const zxid = reader.long()
    const errno = reader.int()
    switch (xid) {
      case XID.event: {
        const event = readEvent(reader)
        if (event !== undefined) this.events.notified(event)
        return
      }
      case XID.ping:
        return this.events.answered(this.pings.shift() ?? this.handshakeSentAt, zxid)
      case XID.auth:
        return this.events.authenticated(errno)
      case XID.setWatches:
        return
      default:
        return this.answered({ xid, zxid, errno }, reader)
    }
  }

  private greeted(reader: JuteReader): void {
    reader.int()
    const timeout = reader.int()
    const id = reader.long()
    const password = reader.bytes()
    this.open = true
    this.events.opened({ sentAt: this.handshakeSentAt, timeout, id, password })
  }

  private answered(
    { xid, zxid, errno }: { xid: number; zxid: bigint; errno: number },
    reader: JuteReader,
  ): void {
    const request = this.pending.first
    if (request?.xid !== xid)
      throw malformed(`an answer to request ${xid} instead of ${request?.xid ?? 'none'}`)
    const { operation, resolve, reject } = request
    const value = errno === 0 ? operation.read(reader, zxid) : undefined
    this.pending.shift()
    this.events.answered(request.sentAt, zxid)
    operation.replied?.(errno)
    if (errno === 0) resolve(value)
    else if (operation.otherwise?.errno === errno) resolve(operation.otherwise.value)
    else reject(refusal(errno, operation.name, operation.path))
  }
}

function unreached({ host, port }: ServerAddress, cause?: NodeJS.ErrnoException): ZooKeeperError {
  const message = `${host}:${port} cannot be reached (${cause?.code ?? cause?.message ?? 'closed'})`
  return new ZooKeeperError('CONNECTION_LOSS', message, { cause })
}

/** Servers give no reason. These are theirs. */
function turnedAway({ host, port }: ServerAddress, cause?: unknown): ZooKeeperError {
  const message = `${host}:${port} took the connection and closed it: it has no quorum, or too many connections (maxClientCnxns), or wants TLS`
  return new ZooKeeperError('CONNECTION_LOSS', message, { cause })
}

function lost({ host, port }: ServerAddress, cause?: unknown): ZooKeeperError {
  return new ZooKeeperError('CONNECTION_LOSS', `Lost the connection to ${host}:${port}`, { cause })
}
