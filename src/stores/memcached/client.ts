import type { Unknown } from '../../core/contract.ts'
import { dial } from './dial.ts'
import type { DialOptions } from './dial.ts'
import { isUnknown, unknown, unknownForGood } from './failure.ts'
import type { Link } from './link.ts'

// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout } = globalThis

interface Attempt {
  readonly waiting: Set<(outcome: Link | Unknown) => void>
  stop(cause: Error): void
}

/** The one connection to the server: made when it is needed, shared by all, made anew by the first who finds it gone. */
export class Client {
  private readonly options: DialOptions
  private current: Link | null = null
  private attempt: Attempt | null = null
  private closed = false

  constructor(options: DialOptions) {
    this.options = options
  }

  /** Null while there is no connection: `connect` then. */
  get link(): Link | null {
    return this.current
  }

  connect(timeout: number): Promise<Link | Unknown> {
    if (this.current !== null) return Promise.resolve(this.current)
    if (this.closed) return Promise.resolve(unknownForGood(new Error('The store was closed')))
    const attempt = (this.attempt ??= this.start())
    return new Promise((resolve) => {
      const settle = (outcome: Link | Unknown): void => {
        clearTimeout(timer)
        attempt.waiting.delete(settle)
        resolve(outcome)
      }
      const timer = setTimeout(() => {
        const cause = new Error('no connection to memcached in time')
        settle(unknown(cause))
        // Nobody is left who wants it, and who comes now begins anew.
        if (attempt.waiting.size > 0) return
        if (this.attempt === attempt) this.attempt = null
        attempt.stop(cause)
      }, timeout)
      attempt.waiting.add(settle)
    })
  }

  close(): void {
    this.closed = true
    const cause = new Error('The store was closed')
    this.attempt?.stop(cause)
    this.current?.end(cause)
  }

  private start(): Attempt {
    let made: Link | null = null
    const { link, stop } = dial(this.options, () => {
      if (made !== null && this.current === made) this.current = null
    })
    const attempt: Attempt = { waiting: new Set(), stop }
    const settle = (outcome: Link | Unknown): void => {
      if (this.attempt === attempt) this.attempt = null
      // It may have ended while the news of it was under way.
      if (!isUnknown(outcome) && outcome.alive) {
        if (this.closed) outcome.end(new Error('The store was closed'))
        else this.current = made = outcome
      }
      for (const waiting of attempt.waiting) waiting(outcome)
    }
    link.then(settle, () => undefined)
    return attempt
  }
}
