import type { Unknown } from '../../core/contract.ts'
import { isUnknown, unknown, unknownForGood } from '../../core/unknown.ts'
import { dial } from './dial.ts'
import type { Dialling, DialOptions } from './dial.ts'
import type { Connection } from './connection.ts'

// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout } = globalThis

/**
 * A dial that is not through by then is begun anew, for the same callers: what was lost of it may never be sent again, though the
 * server is there. Each vain one may take twice as long as the one before, for a server that is far away, or slow.
 */
const PATIENCE_MS = { first: 2000, longest: 16_000 }

/** The one connection to the server: made when it is needed, shared by all, made anew by the first who finds it gone. */
export class Client {
  private readonly options: DialOptions
  private readonly waiting = new Set<(outcome: Connection | Unknown) => void>()
  private current: Connection | null = null
  private dialling: Dialling | null = null
  private patience: number = PATIENCE_MS.first
  private closed = false

  constructor(options: DialOptions) {
    this.options = options
  }

  /** Null while there is no connection: `connect` then. */
  get connection(): Connection | null {
    return this.current
  }

  connect(timeout: number): Promise<Connection | Unknown> {
    if (this.current !== null) return Promise.resolve(this.current)
    if (this.closed) return Promise.resolve(unknownForGood(new Error('The store was closed')))
    if (this.dialling === null) this.dial()
    return new Promise((resolve) => {
      const settle = (outcome: Connection | Unknown): void => {
        clearTimeout(timer)
        this.waiting.delete(settle)
        resolve(outcome)
      }
      const timer = setTimeout(() => {
        const cause = new Error('no connection to memcached in time')
        settle(unknown(cause))
        // Nobody is left who wants it, and who comes now begins anew.
        if (this.waiting.size === 0) this.giveUp(cause)
      }, timeout)
      this.waiting.add(settle)
    })
  }

  close(): void {
    this.closed = true
    const cause = new Error('The store was closed')
    this.giveUp(cause)
    this.tell(unknown(cause))
    this.current?.end(cause)
  }

  private dial(): void {
    let made: Connection | null = null
    const dialling = dial(this.options, () => {
      if (made !== null && this.current === made) this.current = null
    })
    this.dialling = dialling
    // Whoever waits keeps the process alive.
    const overdue = setTimeout(() => {
      this.patience = Math.min(this.patience * 2, PATIENCE_MS.longest)
      this.giveUp(new Error('no connection to memcached in time'))
      this.dial()
    }, this.patience).unref()
    const settle = (outcome: Connection | Unknown): void => {
      clearTimeout(overdue)
      if (this.dialling !== dialling) return
      this.dialling = null
      // It may have ended while the news of it was under way.
      if (!isUnknown(outcome) && outcome.alive) this.current = made = outcome
      if (made !== null) this.patience = PATIENCE_MS.first
      this.tell(outcome)
    }
    dialling.connection.then(settle, () => undefined)
  }

  private giveUp(cause: Error): void {
    const { dialling } = this
    this.dialling = null
    dialling?.stop(cause)
  }

  private tell(outcome: Connection | Unknown): void {
    for (const settle of this.waiting) settle(outcome)
  }
}
