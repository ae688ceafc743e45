import { MAX_MS } from '../core/arguments.ts'
import type { Env, Timer } from './env.ts'

/** Something that has to happen at a time. Part of at most one `Deadlines`. */
export abstract class Deadline {
  at = 0
  before: Deadline | null = null
  after: Deadline | null = null
  list: DeadlineList | null = null

  /** Called once when the time has come. Must not throw. */
  abstract due(now: number): void

  cancel(): void {
    this.list?.owner.delete(this)
  }
}

interface DeadlineList {
  readonly owner: Deadlines
  readonly span: number
  first: Deadline | null
  last: Deadline | null
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
}

/** Empty lists are kept for their span's next use, until there are this many. */
const IDLE_LISTS = 64

/**
 * Any number of deadlines on one timer. Those of one span (all renewals of a 15 s ttl, all waits of 30 s) come in order,
 * so a list per span makes adding and removing free of any search: a timer for each would cost more than a local acquire.
 */
export class Deadlines {
  private readonly clock: TimeSource
  private readonly env: Env
  private readonly options: DeadlinesOptions
  private readonly lists = new Map<number, DeadlineList>()
  private timer: Timer | null = null
  private armedFor = Infinity
  private size = 0

  constructor(clock: TimeSource, env: Env, options: DeadlinesOptions) {
    this.clock = clock
    this.env = env
    this.options = options
    clock.onJump(() => this.rearm())
  }

  /** Adds or moves; Infinity is a time too. `span` tells how long it waits from now on, about: it only groups. */
  set(entry: Deadline, at: number, span: number): void {
    entry.cancel()
    let list = this.lists.get(span)
    if (list === undefined) {
      if (this.lists.size >= IDLE_LISTS) this.dropEmptyLists()
      list = { owner: this, span, first: null, last: null }
      this.lists.set(span, list)
    }
    entry.at = at
    link(list, entry)
    this.size++
    if (at < this.armedFor || this.timer === null) this.arm(at)
    else if (this.size === 1 && !this.options.background) this.timer.keepAlive?.(true)
  }

  /** Only for entries that are in here; `entry.cancel()` asks the right one. */
  delete(entry: Deadline): void {
    if (entry.list?.owner !== this) return
    unlink(entry.list, entry)
    this.size--
    // The timer may stay and fire once for nothing: to make one for each lone acquire costs more than that. It must
    // not keep the process from ending, though.
    if (this.size > 0 || this.options.background || this.timer === null) return
    if (this.timer.keepAlive === undefined) this.disarm()
    else this.timer.keepAlive(false)
  }

  /** Leaves no timer, unless there is something to wait for. */
  stop(): void {
    if (this.size === 0) this.disarm()
  }

  private fire(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = this.clock.now()
    let left = this.options.atOnce ?? Infinity
    for (const list of this.lists.values()) {
      const until = now + (this.options.slack ?? 0) * list.span
      // What is called may set new deadlines; those come later than the last one that stands here now.
      const last = list.last
      for (let entry = list.first; entry !== null && entry.at <= until; entry = list.first) {
        this.delete(entry)
        entry.due(now)
        if (entry === last || --left <= 0) break
      }
    }
    this.options.afterwards?.()
    this.armForEarliest()
  }

  private armForEarliest(): void {
    let earliest = Infinity
    for (const { first } of this.lists.values()) earliest = Math.min(earliest, first?.at ?? Infinity)
    if (this.size > 0 && (earliest < this.armedFor || this.timer === null)) this.arm(earliest)
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

  private dropEmptyLists(): void {
    for (const [span, { first }] of this.lists) if (first === null) this.lists.delete(span)
  }
}

function link(list: DeadlineList, entry: Deadline): void {
  let before = list.last
  while (before !== null && before.at > entry.at) before = before.before
  const after = before === null ? list.first : before.after
  entry.before = before
  entry.after = after
  entry.list = list
  if (before === null) list.first = entry
  else before.after = entry
  if (after === null) list.last = entry
  else after.before = entry
}

function unlink(list: DeadlineList, entry: Deadline): void {
  const { before, after } = entry
  if (before === null) list.first = after
  else before.after = after
  if (after === null) list.last = before
  else after.before = before
  entry.before = null
  entry.after = null
  entry.list = null
}
