import { platform } from '#platform'

import { MAX_MS } from '../core/arguments.ts'
import { DeadlineHeap, HeapEntry } from '../core/deadline-heap.ts'
import type { Timeout } from '../platform/platform.ts'

// Taken once: a user's fake timers must not freeze a request.
const { performance } = globalThis

/** Something that ends at a time unless it is removed before. Part of at most one `Deadlines`. */
export abstract class Deadline extends HeapEntry {
  abstract expire(): void
}

/** One that is nothing but a function to call. */
export class Alarm extends Deadline {
  private readonly ring: () => void

  constructor(ring: () => void) {
    super()
    this.ring = ring
  }

  expire(): void {
    this.ring()
  }
}

/** So many expire before the event loop has its turn again: a server that stands still leaves them by the ten thousand. */
const AT_ONCE = 500
/** A timer that is so late stood behind a blocked event loop, and so did the answers that came meanwhile: they are behind it. */
const BLOCKED_MS = 3
/** For them to be heard. Not one turn of the loop: a driver may have had to send the request first. */
const HEARD_MS = 10

export interface DeadlinesOptions {
  /** While there is one, the process does not end. Default false: a request has a connection that sees to that. */
  readonly holdProcess?: boolean
  /** Called once after some have expired, however many. */
  readonly onLate?: () => void
}

/**
 * The deadlines of a store's requests on one timer: one each would cost a tenth of what the request itself costs. The timer is left
 * running when they are done in time, as most are, and fires once for nothing.
 */
export class Deadlines {
  private readonly heap = new DeadlineHeap<Deadline>()
  private readonly onLate: (() => void) | undefined
  private timer: Timeout | null = null
  private armedFor = Infinity
  /** When the event loop was last found to have been blocked. What was due by then has had its time to be heard since. */
  private hearing = -Infinity
  private holding: boolean

  constructor({ holdProcess = false, onLate }: DeadlinesOptions = {}) {
    this.holding = holdProcess
    this.onLate = onLate
  }

  add(entry: Deadline, ms: number, now: number = performance.now()): void {
    const at = now + ms
    this.heap.add(entry, at)
    if (at < this.armedFor) this.arm(at, ms)
    else if (this.holding && this.heap.size === 1) this.timer?.ref()
  }

  /** Also what is not there (any more). */
  remove(entry: Deadline): void {
    if (entry.slot < 0) return
    this.heap.remove(entry)
    if (this.holding && this.heap.size === 0) this.timer?.unref()
  }

  /** Whether the process has to stay alive for these. One that waits for a connection has nothing but its deadline. */
  holdProcess(hold: boolean): void {
    this.holding = hold
    if (hold && this.heap.size > 0) this.timer?.ref()
    else this.timer?.unref()
  }

  /** Expires everything at once. */
  expireAll(): void {
    this.stop()
    for (let { first } = this.heap; first !== undefined; { first } = this.heap) this.expire(first)
    this.stop()
  }

  /** No timer is left. */
  stop(): void {
    if (this.timer !== null) platform.clearTimeout(this.timer)
    this.timer = null
    this.armedFor = Infinity
  }

  private arm(at: number, ms: number): void {
    if (this.timer !== null) platform.clearTimeout(this.timer)
    this.armedFor = at
    // One beyond the limit would fire at once: `fire` looks at the clock and arms again.
    this.timer = platform.setTimeout(() => this.fire(), Math.min(Math.max(1, Math.ceil(ms)), MAX_MS))
    if (!this.holding) this.timer.unref()
  }

  private fire(): void {
    const now = performance.now()
    const blocked = now - this.armedFor >= BLOCKED_MS
    const due = blocked ? this.hearing : now
    this.timer = null
    this.armedFor = Infinity
    let late = false
    let { first } = this.heap
    for (let left = AT_ONCE; left > 0 && first !== undefined && first.at <= due; left--) {
      late = true
      this.expire(first)
      ;({ first } = this.heap)
    }
    if (late) this.onLate?.()
    ;({ first } = this.heap)
    // Whoever expired may have set the timer already.
    if (first === undefined || first.at >= this.armedFor) return
    if (blocked && first.at <= now) {
      this.hearing = now
      this.arm(now + HEARD_MS, HEARD_MS)
    } else this.arm(Math.max(first.at, now), first.at - now)
  }

  private expire(entry: Deadline): void {
    this.heap.remove(entry)
    entry.expire()
  }
}
