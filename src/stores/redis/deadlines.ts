// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout, performance } = globalThis

/** Something that ends at a time unless it is removed before. Part of at most one `Deadlines`. */
export abstract class Deadline {
  /** 0 while it stands in no list. */
  at = 0
  earlier: Deadline | null = null
  later: Deadline | null = null

  abstract expire(): void
}

/**
 * The deadlines of all requests on one timer: one each would cost a tenth of what the request itself costs. A list in
 * order of time, searched from its end: requests of one program mostly have the same timeout, so the end is the place.
 */
export class Deadlines {
  private first: Deadline | null = null
  private last: Deadline | null = null
  private timer: NodeJS.Timeout | null = null
  private armedFor = Infinity
  private holding = false

  add(entry: Deadline, ms: number): void {
    const at = performance.now() + ms
    entry.at = at
    let earlier = this.last
    while (earlier !== null && earlier.at > at) earlier = earlier.earlier
    const later = earlier === null ? this.first : earlier.later
    entry.earlier = earlier
    entry.later = later
    if (earlier === null) this.first = entry
    else earlier.later = entry
    if (later === null) this.last = entry
    else later.earlier = entry

    if (at < this.armedFor) this.arm(at, ms)
  }

  remove(entry: Deadline): void {
    if (entry.at === 0) return
    entry.at = 0
    const { earlier, later } = entry
    if (earlier === null) this.first = later
    else earlier.later = later
    if (later === null) this.last = earlier
    else later.earlier = earlier
    entry.earlier = null
    entry.later = null
    // The timer is left running, for the next request will want it; it fires once for nothing.
  }

  /**
   * Whether the process has to stay alive for these. A request that is under way has a connection that sees to that;
   * one that waits for a connection has nothing but its deadline.
   */
  holdProcess(hold: boolean): void {
    this.holding = hold
    if (hold) this.timer?.ref()
    else this.timer?.unref()
  }

  /** Expires everything at once. */
  expireAll(): void {
    while (this.first !== null) this.expire(this.first)
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.armedFor = Infinity
  }

  private arm(at: number, ms: number): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.armedFor = at
    this.timer = setTimeout(() => this.fire(), Math.max(1, Math.ceil(ms)))
    if (!this.holding) this.timer.unref()
  }

  private fire(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = performance.now()
    while (this.first !== null && this.first.at <= now) this.expire(this.first)
    if (this.first !== null) this.arm(this.first.at, this.first.at - now)
  }

  private expire(entry: Deadline): void {
    this.remove(entry)
    entry.expire()
  }
}
