/** A timer that waits: when it is due, and what decides among those that are due together. */
export interface HeapTimer {
  readonly due: number
  readonly rank: number
}

/** A binary heap: the earliest timer first, of equals the one with the lowest rank. */
export class TimerHeap<T extends HeapTimer> {
  private readonly items: T[] = []

  get size(): number {
    return this.items.length
  }

  peek(): T | undefined {
    return this.items[0]
  }

  push(timer: T): void {
    this.items.push(timer)
    let at = this.items.length - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.swapUnlessOrdered(parent, at)) return
      at = parent
    }
  }

  pop(): T | undefined {
    const first = this.items[0]
    const last = this.items.pop()
    if (first === undefined || last === undefined || this.items.length === 0) return first
    this.items[0] = last
    this.sink(0)
    return first
  }

  private sink(from: number): void {
    let at = from
    for (;;) {
      const left = 2 * at + 1
      if (left >= this.items.length) return
      const right = left + 1
      const child = right < this.items.length && this.before(right, left) ? right : left
      if (!this.swapUnlessOrdered(at, child)) return
      at = child
    }
  }

  private before(a: number, b: number): boolean {
    const first = this.items[a]
    const second = this.items[b]
    if (first === undefined || second === undefined) return false
    return first.due < second.due || (first.due === second.due && first.rank < second.rank)
  }

  private swapUnlessOrdered(parent: number, child: number): boolean {
    if (!this.before(child, parent)) return false
    const upper = this.items[parent]
    const lower = this.items[child]
    if (upper === undefined || lower === undefined) return false
    this.items[parent] = lower
    this.items[child] = upper
    return true
  }
}
