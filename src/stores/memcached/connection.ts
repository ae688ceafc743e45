import type { Socket } from 'node:net'

import type { Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { Deadlines } from '../../transport/deadlines.ts'
import { nextTick } from '../../transport/next-tick.ts'
import { plainError, refused } from './failure.ts'
import { asItIs, Pending, TOO_LATE } from './pending.ts'
import type { Read, Settle, Terms, Wanted } from './pending.ts'
import { isError, ProtocolError, ReplyReader } from './protocol.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not freeze a request.
const { performance } = globalThis

/** A connection that is silent for this long while an answer is overdue does not come back. */
const DEAD_MS = 1000

/** Where a socket puts what arrives, past Node's streams: those cost as much as all the rest of reading a reply. */
export interface Inbox {
  deliver: (text: string) => void
}

/**
 * One connection. Requests are pipelined and answered in order; what is asked while others are under way goes out
 * together, in one write at the end of the turn. When anything goes wrong the connection is given up, and everything under way is unknown: no request is ever
 * sent twice, or later than its time.
 */
export class Connection {
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
  private readonly deadlines = new Deadlines({ onLate: () => this.lookForLife() })
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
  ask<T, F>(commands: string, replies: number, terms: Terms<F>, read: Read<T | F>): Promise<T | F> {
    const tag = (this.serial = (this.serial % 1_000_000) + 1)
    return new Promise((settle) => {
      const pending = new Pending(replies, terms, read, settle as Settle)
      pending.tag = tag
      this.send(`${commands} O${tag}\r\n`, pending)
    })
  }

  /** Sends commands whose replies cannot be told apart from others: only where nothing depends on it. */
  askPlain(commands: string, wanted: Wanted, timeout: number): Promise<readonly Reply[] | Unknown> {
    return new Promise((settle) =>
      this.send(commands, new Pending(wanted, termsFor(timeout), asItIs, settle as Settle)),
    )
  }

  /** Sends meta commands that nobody waits for. `read` sees the replies, if they come in time. */
  tell(commands: string, replies: number, terms: Terms, read: Read<unknown> = asItIs): void {
    this.send(`${commands}\r\n`, new Pending(replies, terms, read, nobodyWaits))
  }

  /** Gives the connection up. What is under way is unknown. */
  end(cause: Error): void {
    if (this.dead !== null) return
    this.dead = cause
    this.unsent = ''
    this.deadlines.stop()
    this.socket.destroy()
    this.onDeath()
    const answer = unknown(cause)
    for (let pending = this.first; pending !== null; pending = pending.next) pending.fail(answer)
    this.first = this.last = null
  }

  private send(text: string, pending: Pending): void {
    const { deadline, sentAt } = pending
    if (this.dead !== null) return pending.fail(unknown(this.dead))
    if (deadline <= sentAt) return pending.fail(unknown(new Error(TOO_LATE)))
    this.deadlines.add(pending, deadline - sentAt, sentAt)
    if (this.last === null) {
      this.first = this.last = pending
      this.socket.ref()
      // Nothing under way: most likely nothing else comes along, either.
      this.socket.write(text, 'latin1')
      return
    }
    this.last.next = pending
    this.last = pending
    if (this.unsent === '') nextTick(this.flush)
    this.unsent += text
  }

  private readonly flush = (): void => {
    if (this.unsent === '') return
    const text = this.unsent
    this.unsent = ''
    this.socket.write(text, 'latin1')
  }

  private heard(text: string): void {
    const { reader } = this
    reader.feed(text)
    try {
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) this.take(reply)
    } catch (error) {
      this.end(error instanceof ProtocolError ? error : plainError(error))
    }
    // With nothing left to wait for, the next request is sent later than this.
    if (this.first !== null) this.heardAt = performance.now()
  }

  private take(reply: Reply): void {
    const pending = this.first
    if (pending === null) throw new ProtocolError('memcached answered more than it was asked')
    const { wanted, replies, tag } = pending
    replies.push(reply)
    const done = wanted === 'stats' ? reply.code === 'END' || isError(reply) : replies.length === wanted
    if (!done) return
    // Errors and misses do not repeat the tag; anything else without it is the answer to something else.
    if (tag !== 0 && reply.flagNumber('O') !== tag && !isError(reply) && reply.code !== 'EN') {
      throw new ProtocolError('the replies of memcached do not match what was asked')
    }
    this.deadlines.remove(pending)
    this.first = pending.next
    if (this.first === null) {
      this.last = null
      this.socket.unref()
    }
    const { settle } = pending
    if (settle === null) return
    const failure = tag === 0 ? undefined : errorAmong(replies)
    if (failure !== undefined) return pending.fail(failure)
    settle(this.answerOf(pending))
  }

  /** Replies that make no sense end the connection, and whoever asked hears of it: nobody else would tell. */
  private answerOf(pending: Pending): unknown {
    try {
      return pending.read(pending.replies)
    } catch (error) {
      const failure = new ProtocolError(
        `memcached answered with what is no answer: ${plainError(error).message}`,
      )
      pending.fail(unknown(failure))
      throw failure
    }
  }

  /** Some are late: not a sound for so long although it was asked, or not even room for the question? */
  private lookForLife(): void {
    const now = performance.now()
    const since = Math.max(this.heardAt, this.first?.sentAt ?? now)
    if (now - since >= DEAD_MS || this.socket.writableLength > 0) this.end(new Error(TOO_LATE))
  }
}

/** For what is no part of an operation. */
export function termsFor(timeout: number): Terms {
  const now = performance.now()
  return { deadline: now + timeout, now, failed: asItIs }
}

const nobodyWaits = (): void => undefined

function errorAmong(replies: readonly Reply[]): Unknown | undefined {
  for (const reply of replies) if (isError(reply)) return refused(reply)
  return undefined
}
