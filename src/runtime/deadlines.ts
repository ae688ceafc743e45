import { MAX_MS } from '../core/arguments.ts'
import { DeadlineHeap, HeapEntry } from '../core/deadline-heap.ts'
import type { Env, Timer } from './env.ts'

/** Something that has to happen at a time. Part of at most one `Deadlines`. */
export abstract class Deadline extends HeapEntry {
  span = 0
  list: Deadlines | null = null

  /** Called once when the time has come. Must not throw. */
  abstract due(now: number): void

  cancel(): void {
    this.list?.delete(this)
  }
}

/** By which time they are. */
export interface TimeSource {
  now(): number
  /** Calls back when the time has jumped ahead. */
  onJump(callback: () => void): void
}

export interface DeadlinesOptions {
  /** `true`: waiting for these does not keep the process alive. */
  readonly background: boolean
  /** Part of its span by which a deadline may be called early, so that many go together. */
  readonly slack?: number
  /** So many are called before the event loop has its turn again. Default: all that are due. */
  readonly atOnce?: number
  /** After those that were due have been called. */
  readonly afterwards?: () => void
  /** There is something to wait for, after there was nothing. */
  readonly onFirst?: () => void
}

/** Any number of deadlines on one timer: one for each would cost more than a local acquire. */
export class Deadlines {
  private readonly clock: TimeSource
  private readonly env: Env
  private readonly options: DeadlinesOptions
  private readonly heap = new DeadlineHeap<Deadline>()
  private timer: Timer | null = null
  private armedFor = Infinity

  constructor(clock: TimeSource, env: Env, options: DeadlinesOptions) {
    this.clock = clock
    this.env = env
    this.options = options
    clock.onJump(() => this.rearm())
  }

  get size(): number {
    return this.heap.size
  }

  /** Adds or moves; Infinity is a time too. `span` tells how long it waits from now on, about; see `slack`. */
  set(entry: Deadline, at: number, span: number): void {
    entry.cancel()
    entry.list = this
    entry.span = span
    this.heap.add(entry, at)
    if (at < this.armedFor || this.timer === null) this.arm(at)
    else if (this.heap.size === 1 && !this.options.background) this.timer.keepAlive?.(true)
    if (this.heap.size === 1) this.options.onFirst?.()
  }

  /** Only for entries that are in here; `entry.cancel()` asks the right one. */
  delete(entry: Deadline): void {
    if (entry.list !== this) return
    entry.list = null
    this.heap.remove(entry)
    // The timer may stay and fire once for nothing: to make one for each lone acquire costs more than that. It must
    // not keep the process from ending, though.
    if (this.heap.size > 0 || this.options.background || this.timer === null) return
    if (this.timer.keepAlive === undefined) this.disarm()
    else this.timer.keepAlive(false)
  }

  /** Leaves no timer, unless there is something to wait for. */
  stop(): void {
    if (this.heap.size === 0) this.disarm()
  }

  private fire(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = this.clock.now()
    const { slack, atOnce = Infinity } = this.options
    // What is called may set new deadlines. They wait for the next time, also if they are due.
    const before = this.heap.added
    for (let left = atOnce; left > 0; left--) {
      const { first } = this.heap
      if (first === undefined || first.order >= before) break
      // Nothing of a span that never ends is no number, and no time is later than that.
      if (first.at > (slack === undefined ? now : now + slack * first.span)) break
      this.delete(first)
      first.due(now)
    }
    this.options.afterwards?.()
    this.armForEarliest()
  }

  private armForEarliest(): void {
    const { first } = this.heap
    if (first !== undefined && (first.at < this.armedFor || this.timer === null)) this.arm(first.at)
  }

  /** What is due now has a timer that was set by another time. */
  private rearm(): void {
    if (this.timer === null) return
    this.disarm()
    this.armForEarliest()
  }

  private arm(at: number): void {
    this.disarm()
    this.armedFor = at
    // A timer may fire early, and one beyond the limit would fire at once: `fire` looks at the clock and arms again.
    const delay = Math.min(Math.max(1, Math.ceil(at - this.clock.now())), MAX_MS)
    this.timer = this.env.setTimer(() => this.fire(), delay, this.options.background)
  }

  private disarm(): void {
    this.timer?.cancel()
    this.timer = null
    this.armedFor = Infinity
  }
}
