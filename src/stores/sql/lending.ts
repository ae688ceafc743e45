import type { Call } from './client.ts'

// Taken once: a user's fake timers must not make anybody wait for ever.
const { setTimeout, clearTimeout } = globalThis

/** Milliseconds. To make a connection costs a busy server more than most statements do. */
const GRACE_MS = 250

export interface Ways {
  /** Back to the pool. */
  readonly back: () => void
  /** Nobody gets it any more, and what it does at the server is to end. */
  readonly destroy: () => void
}

/**
 * A connection in the hands of a call. When the call's time is over it goes back, if it owes no answer: nothing more is sent
 * for the call. One that does has a moment to answer before it is destroyed. If all who give up destroyed theirs, a crowd
 * would keep the server busy with new ones, and so everybody's time would be over.
 */
export class Lending {
  private readonly call: Call
  private readonly ways: Ways
  private timer: NodeJS.Timeout | undefined
  private over = false

  constructor(call: Call, ways: Ways) {
    this.call = call
    this.ways = ways
    call.onExpire = () => {
      if (call.sending === 0) this.end(ways.back)
      else this.timer = setTimeout(() => this.end(ways.destroy), GRACE_MS).unref()
    }
  }

  end(how: () => void = this.ways.back): void {
    if (this.over) return
    this.over = true
    clearTimeout(this.timer)
    this.call.onExpire = null
    how()
  }
}
