// Taken once: a user's fake timers must not freeze a request.
const { setTimeout, clearTimeout, performance } = globalThis

/** Something that ends at a time unless it is removed before. Part of at most one `Deadlines`. */
export abstract class Deadline {
  at = 0
  /** Its place in the heap; -1 while it stands in none. */
  place = -1

  abstract expire(): void
}

/** So many expire before the event loop has its turn again: a server that stands still leaves them by the ten thousand. */
const AT_ONCE = 500

/**
 * The deadlines of all requests on one timer: one each would cost a tenth of what the request itself costs. A binary heap:
 * requests with different timeouts by the ten thousand, as a server that stands still leaves them, must not make each
 * other slow.
 */
export class Deadlines {
  private readonly heap: Deadline[] = []
  private timer: NodeJS.Timeout | null = null
  private armedFor = Infinity
  private holding = false

  add(entry: Deadline, ms: number): void {
    const at = performance.now() + ms
    entry.at = at
    this.heap.push(entry)
    this.rise(entry, this.heap.length - 1)
    if (at < this.armedFor) this.arm(at, ms)
  }

  remove(entry: Deadline): void {
    const { place } = entry
    if (place < 0) return
    entry.place = -1
    const last = this.heap.pop()
    if (last === undefined || last === entry) return
    // The last one takes the place, and from there goes up or down.
    this.rise(last, place)
    if (last.place === place) this.sink(last, place)
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
    for (let first = this.heap[0]; first !== undefined; first = this.heap[0]) this.expire(first)
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.armedFor = Infinity
  }

  private rise(entry: Deadline, from: number): void {
    const { heap } = this
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = heap[above] as Deadline
      if (other.at <= entry.at) break
      heap[place] = other
      other.place = place
      place = above
    }
    heap[place] = entry
    entry.place = place
  }

  private sink(entry: Deadline, from: number): void {
    const { heap } = this
    let place = from
    for (;;) {
      let below = 2 * place + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && (heap[below + 1] as Deadline).at < (heap[below] as Deadline).at) below++
      const other = heap[below] as Deadline
      if (other.at >= entry.at) break
      heap[place] = other
      other.place = place
      place = below
    }
    heap[place] = entry
    entry.place = place
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
    let first = this.heap[0]
    for (let left = AT_ONCE; left > 0 && first !== undefined && first.at <= now; left--) {
      this.expire(first)
      first = this.heap[0]
    }
    // Whoever expired may have set the timer already.
    if (first !== undefined && first.at < this.armedFor) this.arm(first.at, first.at - now)
  }

  private expire(entry: Deadline): void {
    this.remove(entry)
    entry.expire()
  }
}
