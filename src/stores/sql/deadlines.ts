// Taken once: a user's fake timers must not keep a call from ending.
const { setTimeout, clearTimeout, performance } = globalThis

/** Something that ends at a certain time unless it is done before. */
export interface Deadline {
  readonly at: number
  readonly expire: () => void
}

/**
 * One timer for all calls under way, left running when they are done in time, as most are: with SQLite a timer for each
 * costs as much as all the rest that is not the statement.
 */
export class Deadlines {
  private readonly open = new Set<Deadline>()
  private timer: NodeJS.Timeout | null = null
  private armedFor = Infinity

  add(ms: number, expire: () => void): Deadline {
    const deadline = { at: performance.now() + ms, expire }
    this.open.add(deadline)
    if (deadline.at < this.armedFor) this.arm(deadline.at, ms)
    // Whoever waits for an answer keeps the process alive; a timer that nobody needs does not.
    else if (this.open.size === 1) this.timer?.ref()
    return deadline
  }

  delete(deadline: Deadline): void {
    if (this.open.delete(deadline) && this.open.size === 0) this.timer?.unref()
  }

  private arm(at: number, ms: number): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.armedFor = at
    this.timer = setTimeout(() => this.lookAtTheTime(), Math.max(1, Math.ceil(ms)))
  }

  private lookAtTheTime(): void {
    this.timer = null
    this.armedFor = Infinity
    const now = performance.now()
    let earliest = Infinity
    for (const deadline of this.open) {
      if (deadline.at > now) {
        earliest = Math.min(earliest, deadline.at)
        continue
      }
      this.open.delete(deadline)
      deadline.expire()
    }
    // What expires may begin something new, and have set the timer for it already.
    if (earliest < this.armedFor) this.arm(earliest, earliest - now)
  }
}
