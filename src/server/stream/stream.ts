import type { Socket } from 'node:net'

import { LineCutter } from '../../stores/holdfast/lines.ts'
import { eventToWire } from '../../stores/holdfast/wire.ts'
import type { Hello, Spoken } from '../../stores/holdfast/wire.ts'
import type { Caller } from '../caller.ts'
import type { Limits } from '../limits.ts'
import { RateLimit } from '../rate.ts'
import type { LockService } from '../service.ts'
import type { Sessions } from '../sessions.ts'
import { Operations } from './operations.ts'

export interface StreamParts {
  readonly service: LockService
  readonly sessions: Sessions
  readonly limits: Limits
  readonly hello: Hello
}

/** Bytes that a client may leave unread before it is taken for gone. */
const UNREAD = 4 * 1024 * 1024
/** Requests of one connection that the store has not answered; more are read when there is room. */
const UNANSWERED = 10_000
const MALFORMED = -1

/** One connection of a remote store. */
export class SessionStream {
  private readonly socket: Socket
  private readonly operations: Operations
  private readonly lines: LineCutter
  private readonly rate: RateLimit
  private out = ''
  private scheduled = false
  private unanswered = 0
  private heardAt = performance.now()
  /** Lines that were read while there was no room for them. */
  private backlog: string[] = []
  private paused = false

  constructor({ service, sessions, limits, hello }: StreamParts, caller: Caller, socket: Socket) {
    this.socket = socket
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
    socket.on('close', () => this.operations.close())
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

  private work(lines: readonly string[]): void {
    // The answers of one packet go out in one packet.
    this.scheduled = true
    for (const [index, line] of lines.entries()) {
      const pause = this.rate.take('')
      if (pause > 0 || this.unanswered >= UNANSWERED || this.socket.writableNeedDrain) {
        this.pause(lines.slice(index), pause)
        break
      }
      if (!this.take(line)) return this.destroy()
    }
    this.flush()
  }

  private take(line: string): boolean {
    const [number, operation, payload, timeout] = parse(line)
    if (number === MALFORMED) return false
    const answer = this.operations.run(operation, payload, timeout)
    if (!(answer instanceof Promise)) {
      this.send(number, answer)
      return true
    }
    this.unanswered++
    answer.then(
      (settled) => {
        this.unanswered--
        this.send(number, settled)
        this.goOn()
      },
      () => this.destroy(),
    )
    return true
  }

  /** Too fast, or not listening: the client's own buffers fill up, and it has to wait. */
  private pause(rest: readonly string[], ms: number): void {
    this.paused = true
    this.backlog = [...rest, ...this.backlog]
    this.socket.pause()
    if (ms > 0) setTimeout(() => this.goOn(), ms).unref()
  }

  private goOn(): void {
    if (!this.paused || this.socket.destroyed) return
    if (this.unanswered >= UNANSWERED || this.socket.writableNeedDrain) return
    this.paused = false
    const lines = this.backlog
    this.backlog = []
    this.work(lines)
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
    const { out, socket } = this
    if (out === '' || socket.destroyed) return
    this.out = ''
    socket.write(out)
    if (socket.writableLength > UNREAD) this.destroy()
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
