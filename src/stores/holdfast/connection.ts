import type { Socket } from 'node:net'

import { backOff } from '../../core/back-off.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { dial } from './dial.ts'
import type { DialOptions } from './dial.ts'
import { LineCutter } from './lines.ts'
import { PendingRequests } from './pending.ts'
import { isPlausible, LONGEST_LINE, SHORT_LINE } from './plausible.ts'
import { RefusedError } from './refused.ts'
import { helloOf } from './replies.ts'
import type { Connection, ConnectionOwner } from './server-store.ts'
import { RENEWAL_BYTES } from './wire.ts'
import type { Hello, Operation } from './wire.ts'

// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, performance } = globalThis

const CONNECT_TIMEOUT_MS = 5000
const RECONNECT_MS = { first: 50, longest: 2000 }
/** How often an open connection is looked after. */
const LOOK_MS = 10_000
/** A connection that nobody uses is closed after this. The server gives up silent ones later. */
const IDLE_MS = 30_000
/** A connection that has said nothing for this long while an answer is overdue is taken for dead. */
const DEAD_MS = 1000
/** The kernel takes what is written; more than this is kept here, where it can still be called back. */
const UNSENT_BYTES = 64 * 1024

/**
 * The connection to a lock server: made when needed, shared by all requests, made again while somebody listens.
 * A request is sent at most once, and not after its time is up.
 */
export class ServerConnection implements Connection {
  hello: Hello | null = null
  readonly listeningIsFree = true
  readonly renewalBytes: number = RENEWAL_BYTES
  /** On this connection. */
  private greeted = false
  private readonly options: DialOptions
  private readonly owner: ConnectionOwner
  private readonly requests: PendingRequests
  private socket: Socket | null = null
  private dialling: AbortController | null = null
  private closed = false
  private flushing = false
  private heardAt = 0
  /** When something was sent after which nothing was heard; 0 if nothing was. */
  private expectingSince = 0
  private usedAt = 0
  private failures = 0
  private reconnect: NodeJS.Timeout | null = null
  private look: NodeJS.Timeout | null = null
  /** Claims in line: while there is one, the process must not end. */
  private kept = false

  constructor(options: DialOptions, owner: ConnectionOwner) {
    this.options = options
    this.owner = owner
    this.requests = new PendingRequests(
      () => this.overdue(),
      (busy) => this.hold(busy),
    )
  }

  get connected(): boolean {
    return this.socket !== null
  }

  ask(operation: Operation, payload: unknown, timeout: number): Promise<unknown> {
    if (this.closed) return Promise.resolve(unknown(new Error('The store was closed')))
    const answer = this.requests.add(operation, payload, timeout)
    if (this.socket === null) this.connect()
    else if (!this.flushing) {
      // At the end of this turn of the loop: what is asked together goes out in one write.
      this.flushing = true
      queueMicrotask(this.flush)
    }
    return answer
  }

  /** Whether somebody waits who was not promised an answer at a certain time. */
  keep(kept: boolean): void {
    if (kept === this.kept) return
    this.kept = kept
    this.hold(this.requests.size > 0)
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    if (this.reconnect !== null) clearTimeout(this.reconnect)
    this.dialling?.abort()
    this.drop(new Error('The store was closed'))
  }

  private connect(): void {
    if (this.dialling !== null || this.closed) return
    if (this.reconnect !== null) clearTimeout(this.reconnect)
    this.reconnect = null
    const control = new AbortController()
    this.dialling = control
    const timer = setTimeout(() => control.abort(), CONNECT_TIMEOUT_MS)
    dial(this.options, control.signal).then(
      ({ socket, head }) => {
        clearTimeout(timer)
        this.dialling = null
        if (this.closed) socket.destroy()
        else this.opened(socket, head)
      },
      (error: unknown) => {
        clearTimeout(timer)
        this.dialling = null
        this.failures++
        const final = error instanceof RefusedError && !error.retryable
        this.requests.failAll(final ? unknownForGood(error) : unknown(error))
        this.reconnectLater()
      },
    )
  }

  private opened(socket: Socket, head: Buffer): void {
    this.socket = socket
    this.greeted = false
    this.heardAt = this.usedAt = performance.now()
    this.expectingSince = 0
    const lines = new LineCutter(LONGEST_LINE)
    socket.on('data', (bytes: Buffer) => this.heard(socket, lines.push(bytes)))
    socket.on('drain', this.flush)
    // Whatever ends it, 'close' follows.
    socket.on('error', () => undefined)
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      if (this.socket === socket) this.drop(new Error('The connection to the lock server ended'))
    })
    this.look = setInterval(() => this.lookAfter(), LOOK_MS)
    this.look.unref()
    this.owner.connected()
    this.flush()
    this.hold(this.requests.size > 0)
    if (head.length > 0) this.heard(socket, lines.push(head))
  }

  private readonly flush = (): void => {
    this.flushing = false
    const { socket } = this
    if (socket === null || socket.writableLength > UNSENT_BYTES) return
    const lines = this.requests.takeUnsent()
    if (lines === '') return
    this.usedAt = performance.now()
    if (this.expectingSince === 0) this.expectingSince = this.usedAt
    socket.write(lines)
  }

  private heard(socket: Socket, lines: string[] | null): void {
    if (lines === null) return void socket.destroy()
    this.heardAt = performance.now()
    this.expectingSince = 0
    for (const line of lines) {
      // Somebody else's protocol: nothing that follows can be trusted.
      if (!this.take(line)) return void socket.destroy()
    }
  }

  /** The first thing that a server says is its hello; what comes before it is no answer of a lock server. */
  private take(line: string): boolean {
    if (line.length > SHORT_LINE) {
      const asked = this.requests.askedWith(numberOf(line))
      if (asked === 'late') return true
      if (asked === null || !isPlausible(line, asked)) return false
    }
    const [number, said] = parse(line)
    if (number > 0 && this.greeted) {
      this.requests.settle(number, said)
      return true
    }
    if (number !== 0) return false
    if (this.greeted) {
      this.owner.told(said)
      return true
    }
    const hello = helloOf(said)
    if (hello === null) return false
    this.hello = hello
    this.greeted = true
    this.failures = 0
    return true
  }

  /** A request was not answered in time. If nothing else was, either, the connection is not worth keeping. */
  private overdue(): void {
    if (this.socket === null || this.expectingSince === 0) return
    if (performance.now() - this.expectingSince >= DEAD_MS)
      this.drop(new Error('The lock server says nothing any more'))
  }

  private lookAfter(): void {
    const idle = performance.now() - Math.max(this.usedAt, this.heardAt)
    if (this.owner.listening()) {
      // Silence is not proof that the line still stands.
      if (idle >= LOOK_MS) this.ping()
    } else if (idle >= IDLE_MS && this.requests.size === 0) this.socket?.destroy()
  }

  private ping(): void {
    this.ask('ping', null, CONNECT_TIMEOUT_MS).then(
      () => undefined,
      () => undefined,
    )
  }

  private drop(cause: Error): void {
    const { socket } = this
    this.socket = null
    // One that ends before its hello is as good as none.
    if (socket !== null && !this.greeted) this.failures++
    if (this.look !== null) clearInterval(this.look)
    this.look = null
    socket?.destroy()
    this.requests.failAll(unknown(cause))
    this.reconnectLater()
  }

  private reconnectLater(): void {
    if (this.closed || !this.owner.listening() || this.reconnect !== null || this.dialling !== null) return
    const pause = backOff(this.failures, RECONNECT_MS, Math.random())
    // Many clients lose a server at once; they should not all come back at once.
    this.reconnect = setTimeout(() => this.connect(), pause)
    if (!this.kept) this.reconnect.unref()
  }

  /** The process stays while somebody waits for an answer or for a lock, and not a moment longer. */
  private hold(busy: boolean): void {
    const stay = busy || this.kept
    for (const one of [this.socket, this.reconnect]) {
      if (stay) one?.ref()
      else one?.unref()
    }
  }
}

/** Which request a line answers, before anything else of it is looked at. */
function numberOf(line: string): number {
  return Number(/^\[(\d{1,16}),/.exec(line)?.[1] ?? 0)
}

const NONE: readonly [number, unknown] = [-1, null]

function parse(line: string): readonly [number, unknown] {
  try {
    const parsed = JSON.parse(line) as unknown
    if (!Array.isArray(parsed)) return NONE
    const [number, said] = parsed as unknown[]
    return typeof number === 'number' && Number.isSafeInteger(number) ? [number, said] : NONE
  } catch {
    return NONE
  }
}
