import type { Socket } from 'node:net'

import { LineCutter } from '../../stores/holdfast/lines.ts'
import { eventToWire } from '../../stores/holdfast/wire.ts'
import type { Hello, Spoken } from '../../stores/holdfast/wire.ts'
import type { Caller } from '../caller.ts'
import type { Limits } from '../limits.ts'
import type { Load } from '../load.ts'
import type { Outbox } from '../outbox.ts'
import { RateLimit } from '../rate.ts'
import type { LockService } from '../service.ts'
import type { Sessions } from '../sessions.ts'
import type { Share } from '../shares.ts'
import { Operations } from './operations.ts'

export interface StreamParts {
  readonly service: LockService
  readonly sessions: Sessions
  readonly limits: Limits
  readonly outbox: Outbox
  readonly hello: Hello
}

/** Characters of answers that are put together before they are written. */
const TOGETHER = 64 * 1024
/** Requests of one connection that the store has not answered; more are read when there is room. A renewal is one. */
const UNANSWERED = 10_000
/** The same, while others wait for room. */
const FAIR_UNANSWERED = 100
/** The same, for those whose answers may be long. */
const LONG_UNANSWERED = 4
const LONG = new Set<unknown>(['list', 'inspect'])
const MALFORMED = -1

/** One connection of a remote store. */
export class SessionStream {
  private readonly socket: Socket
  private readonly operations: Operations
  private readonly lines: LineCutter
  private readonly rate: RateLimit
  private readonly unread: number
  private readonly outbox: Outbox
  private readonly load: Load
  private readonly share: Share
  /** Of the load: whoever has waited for it has one line, whatever else. */
  private readonly inTurn = (): void => this.goOn(1)
  private readonly inShare = (): void => this.goOn()
  private out = ''
  private scheduled = false
  private unanswered = 0
  private longUnanswered = 0
  private heardAt = performance.now()
  /** Lines that were read while there was no room for them. */
  private backlog: string[] = []
  private paused = false

  constructor({ service, sessions, limits, outbox, hello }: StreamParts, caller: Caller, socket: Socket) {
    this.socket = socket
    this.outbox = outbox
    this.load = service.load
    this.share = service.shares.of(caller.principal)
    this.unread = limits.unread
    this.lines = new LineCutter(limits.line)
    this.rate = new RateLimit(limits.operationsPerSecond)
    this.operations = new Operations({ service, sessions }, caller, (session) => (event) => {
      this.send(0, { session, event: eventToWire(event) })
    })
    socket.setNoDelay(true)
    socket.setTimeout(0)
    socket.on('data', (bytes: Buffer) => this.heard(bytes))
    socket.on('drain', () => this.goOn())
    socket.on('error', () => undefined)
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      this.operations.close()
      this.load.forget(this.inTurn)
      this.share.forget(this.inShare)
    })
    this.send(0, hello)
  }

  /** What came in the same packet as the wish to upgrade. */
  head(bytes: Buffer): void {
    if (bytes.length > 0) this.heard(bytes)
  }

  /** Milliseconds since the client last said anything. */
  get silentFor(): number {
    return performance.now() - this.heardAt
  }

  /** Ends it when all that was said has been sent. */
  end(): void {
    this.flush()
    this.socket.end()
  }

  destroy(): void {
    this.socket.destroy()
  }

  private heard(bytes: Buffer): void {
    this.heardAt = performance.now()
    const lines = this.lines.push(bytes)
    if (lines === null) return this.destroy()
    if (this.paused) return void this.backlog.push(...lines)
    this.work(lines)
  }

  /** `sure`: how many lines are worked on without a look at the time. */
  private work(lines: readonly string[], sure = 0): void {
    const { left } = this.share
    const began = performance.now()
    const isLate = (index: number): boolean => index >= sure && performance.now() - began >= left
    // The answers of one packet go out in one packet.
    this.scheduled = true
    for (const [index, line] of lines.entries()) {
      const pause = this.rate.take('')
      if (pause > 0 || !this.hasRoom() || !this.load.hasRoom || isLate(index)) {
        this.pause(lines.slice(index), pause)
        break
      }
      if (!this.take(line)) return this.destroy()
      if (this.out.length > TOGETHER) this.write()
    }
    this.flush()
    this.share.spend(performance.now() - began)
  }

  /** Looked at before a request is worked on: what it answers has to be kept until the client reads it. */
  private hasRoom(): boolean {
    return (
      this.unanswered < (this.load.isCrowded ? FAIR_UNANSWERED : UNANSWERED) &&
      this.longUnanswered < LONG_UNANSWERED &&
      !this.socket.writableNeedDrain &&
      !this.socket.destroyed
    )
  }

  private take(line: string): boolean {
    const [number, operation, payload, timeout] = parse(line)
    if (number === MALFORMED) return false
    const answer = this.operations.run(operation, payload, timeout)
    if (!(answer instanceof Promise)) {
      this.send(number, answer)
      return true
    }
    const long = LONG.has(operation) ? 1 : 0
    const requests = Array.isArray(payload) ? Math.max(1, payload.length) : 1
    this.unanswered += requests
    this.load.begin(requests)
    this.longUnanswered += long
    answer.then(
      (settled) => {
        this.unanswered -= requests
        this.load.end(requests)
        this.longUnanswered -= long
        this.send(number, settled)
        this.goOn()
      },
      () => {
        this.load.end(requests)
        this.destroy()
      },
    )
    return true
  }

  /** Too fast, or not listening: the client's own buffers fill up, and it has to wait. */
  private pause(rest: readonly string[], ms: number): void {
    this.paused = true
    this.backlog = [...rest, ...this.backlog]
    this.socket.pause()
    if (ms > 0) setTimeout(() => this.goOn(), ms).unref()
    else if (this.hasRoom()) {
      if (this.load.hasRoom) this.share.wait(this.inShare)
      else this.load.wait(this.inTurn)
    }
  }

  private goOn(sure = 0): void {
    if (!this.paused || !this.hasRoom()) return
    if (!this.load.hasRoom) return this.load.wait(this.inTurn)
    if (sure === 0 && this.share.left <= 0) return this.share.wait(this.inShare)
    this.paused = false
    const lines = this.backlog
    this.backlog = []
    this.work(lines, sure)
    // Working on them may have paused it again.
    if (!(this.paused as boolean)) this.socket.resume()
  }

  private send(number: number, spoken: Spoken): void {
    this.out += `${JSON.stringify([number, spoken])}\n`
    if (this.scheduled) return
    this.scheduled = true
    process.nextTick(() => this.flush())
  }

  private flush(): void {
    this.scheduled = false
    this.write()
  }

  private write(): void {
    const { out, socket } = this
    if (out === '' || socket.destroyed) return
    this.out = ''
    // Before this one: an answer may be longer than that, if somebody reads it.
    if (socket.writableLength > this.unread) return this.destroy()
    socket.write(out)
    this.outbox.wrote(socket)
  }
}

function parse(line: string): readonly [number, unknown, unknown, unknown] {
  try {
    const parsed = JSON.parse(line) as unknown
    if (!Array.isArray(parsed)) return [MALFORMED, null, null, null]
    const [number, operation, payload, timeout] = parsed as unknown[]
    const good = typeof number === 'number' && Number.isSafeInteger(number) && number > 0
    return [good ? number : MALFORMED, operation, payload, timeout]
  } catch {
    return [MALFORMED, null, null, null]
  }
}
