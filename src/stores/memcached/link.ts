import type { Socket } from 'node:net'

import type { Unknown } from '../../core/contract.ts'
import { isUnknown, plainError, refused, unknown } from './failure.ts'
import { isError, ProtocolError, ReplyReader } from './protocol.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout, performance } = globalThis

/** A connection that is silent for this long while an answer is overdue does not come back. */
const DEAD_MS = 1000

/** How many replies a request has; `stats`: lines until `END`. */
type Wanted = number | 'stats'
/** Must not throw. */
export type Read<T> = (replies: readonly Reply[]) => T | Promise<T | Unknown> | Unknown
type Settle = (answer: readonly Reply[] | Unknown) => void

/** Where a socket puts what arrives, past Node's streams: those cost as much as all the rest of reading a reply. */
export interface Inbox {
  deliver: (text: string) => void
}

interface Pending {
  readonly wanted: Wanted
  /** What the last reply has to repeat; empty where the command cannot. */
  readonly tag: string
  sentAt: number
  readonly deadline: number
  readonly replies: Reply[]
  /** Null when nobody waits any more; the replies are still to be read. */
  settle: Settle | null
  next: Pending | null
}

function pendingFor(wanted: Wanted, tag: string, deadline: number, settle: Settle): Pending {
  return { wanted, tag, sentAt: 0, deadline, replies: [], settle, next: null }
}

/**
 * One connection. Requests are pipelined and answered in order; what is asked while others are under way goes out
 * together, in one write at the end of the turn. When anything goes wrong the connection is given up, and everything under way is unknown: no request is ever
 * sent twice, or later than its time.
 */
export class Link {
  /** Whether the server takes a CAS value of our choice. */
  ownCas = false
  /** When the server's time was last asked for here. */
  timeAskedAt: number = -Infinity
  private readonly socket: Socket
  private readonly reader = new ReplyReader()
  private readonly onDeath: () => void
  private first: Pending | null = null
  private last: Pending | null = null
  private unsent = ''
  private serial = 0
  private heardAt = 0
  private timer: NodeJS.Timeout | null = null
  private armedFor = Infinity
  private dead: Error | null = null

  constructor(socket: Socket, inbox: Inbox, onDeath: () => void) {
    this.socket = socket
    this.onDeath = onDeath
    inbox.deliver = (text) => this.heard(text)
    socket.on('end', () => this.end(new Error('memcached closed the connection')))
    socket.on('error', (error) => this.end(plainError(error)))
    socket.on('close', () => this.end(new Error('the connection to memcached ended')))
    // Whoever waits for an answer keeps the process alive, an open connection does not.
    socket.unref()
  }

  get alive(): boolean {
    return this.dead === null
  }

  /**
   * Sends meta commands: `replies` of them, the last one without its line end. `read` makes the answer of the replies, in the
   * same turn: a promise less for each step of the way is worth having here. An error among the replies is the answer to all.
   */
  ask<T>(commands: string, replies: number, deadline: number, read: Read<T>): Promise<T | Unknown> {
    const tag = ` O${(this.serial = (this.serial + 1) % 1_000_000)}`
    return new Promise((resolve) => {
      const settle: Settle = (answer) =>
        resolve(isUnknown(answer) ? answer : (errorAmong(answer) ?? read(answer)))
      this.send(`${commands}${tag}\r\n`, pendingFor(replies, tag, deadline, settle))
    })
  }

  /** Sends commands whose replies cannot be told apart from others: only where nothing depends on it. */
  askPlain(commands: string, wanted: Wanted, timeout: number): Promise<readonly Reply[] | Unknown> {
    const deadline = performance.now() + timeout
    return new Promise((settle) => this.send(commands, pendingFor(wanted, '', deadline, settle)))
  }

  /** Sends meta commands that nobody waits for. `read` sees the replies, if they come in time. */
  tell(
    commands: string,
    replies: number,
    deadline: number,
    read?: (replies: readonly Reply[]) => void,
  ): void {
    const settle: Settle = (answer) => {
      if (!isUnknown(answer)) read?.(answer)
    }
    this.send(`${commands}\r\n`, pendingFor(replies, '', deadline, settle))
  }

  /** Gives the connection up. What is under way is unknown. */
  end(cause: Error): void {
    if (this.dead !== null) return
    this.dead = cause
    this.unsent = ''
    if (this.timer !== null) clearTimeout(this.timer)
    this.socket.destroy()
    this.onDeath()
    const answer = unknown(cause)
    for (let pending = this.first; pending !== null; pending = pending.next) pending.settle?.(answer)
    this.first = this.last = null
  }

  private send(text: string, pending: Pending): void {
    if (this.dead !== null) return pending.settle?.(unknown(this.dead))
    const now = performance.now()
    const { deadline } = pending
    if (deadline <= now) return pending.settle?.(unknown(new Error('memcached did not answer in time')))
    pending.sentAt = now
    if (deadline < this.armedFor) this.arm(deadline, deadline - now)
    if (this.last === null) {
      this.first = this.last = pending
      this.socket.ref()
      // Nothing under way: most likely nothing else comes along, either.
      this.socket.write(text, 'latin1')
      return
    }
    this.last.next = pending
    this.last = pending
    if (this.unsent === '') process.nextTick(this.flush)
    this.unsent += text
  }

  private readonly flush = (): void => {
    if (this.unsent === '') return
    const text = this.unsent
    this.unsent = ''
    this.socket.write(text, 'latin1')
  }

  private heard(text: string): void {
    this.heardAt = performance.now()
    this.reader.feed(text)
    try {
      for (let reply = this.reader.next(); reply !== undefined; reply = this.reader.next()) this.take(reply)
    } catch (error) {
      this.end(error instanceof ProtocolError ? error : plainError(error))
    }
  }

  private take(reply: Reply): void {
    const pending = this.first
    if (pending === null) throw new ProtocolError('memcached answered more than it was asked')
    const { wanted, replies, tag, settle } = pending
    replies.push(reply)
    const done = wanted === 'stats' ? reply.line === 'END' || isError(reply) : replies.length === wanted
    if (!done) return
    // Errors and misses do not repeat the tag; anything else without it is the answer to something else.
    if (tag !== '' && !reply.line.endsWith(tag) && !isError(reply) && reply.line !== 'EN') {
      throw new ProtocolError('the replies of memcached do not match what was asked')
    }
    this.first = pending.next
    if (this.first === null) {
      this.last = null
      this.socket.unref()
    }
    settle?.(replies)
  }

  /** Left running when requests are answered in time: most are, and setting it anew for each would cost more. */
  private arm(deadline: number, ms: number): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.armedFor = deadline
    this.timer = setTimeout(() => this.lookAtTheTime(), Math.max(1, Math.ceil(ms)))
    this.timer.unref()
  }

  private lookAtTheTime(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = performance.now()
    let earliest = Infinity
    const overdue: Settle[] = []
    for (let pending = this.first; pending !== null; pending = pending.next) {
      if (pending.deadline > now) {
        if (pending.deadline < earliest) earliest = pending.deadline
        continue
      }
      if (pending.settle !== null) overdue.push(pending.settle)
      pending.settle = null
    }
    const cause = new Error('memcached did not answer in time')
    for (const settle of overdue) settle(unknown(cause))
    if (overdue.length > 0 && this.seemsDead(now)) this.end(cause)
    else if (earliest < this.armedFor) this.arm(earliest, earliest - now)
  }

  /** Not a sound for so long although it was asked, or not even room for the question. */
  private seemsDead(now: number): boolean {
    const since = Math.max(this.heardAt, this.first?.sentAt ?? now)
    return now - since >= DEAD_MS || this.socket.writableLength > 0
  }
}

function errorAmong(replies: readonly Reply[]): Unknown | undefined {
  for (const reply of replies) if (isError(reply)) return refused(reply)
  return undefined
}
