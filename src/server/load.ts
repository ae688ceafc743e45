import { getHeapStatistics } from 'node:v8'

/** Bytes of the heap for each request under way: the request, what a driver makes of it, and its answer. */
const HEAP_EACH = 16 * 1024

/**
 * The requests of all connections that the store has not answered. Each connection has a limit, but there are many of
 * them, and a store may be slow: when there is no room for more, they wait in line, first come first served.
 */
export class Load {
  private readonly most: number
  private size = 0
  private readonly waiting = new Set<() => void>()
  private waking = false
  private inTurn = false

  constructor(most: number = Math.floor(getHeapStatistics().heap_size_limit / HEAP_EACH)) {
    this.most = most
  }

  /** For who asks now: there may be room that others wait for. */
  get hasRoom(): boolean {
    return this.size < this.most && (this.waiting.size === 0 || this.inTurn)
  }

  /** Somebody waits. */
  get isCrowded(): boolean {
    return this.waiting.size > 0
  }

  begin(requests: number): void {
    this.size += requests
  }

  end(requests: number): void {
    this.size -= requests
    this.wake()
  }

  /** `go` is called once, when its turn has come; who waits already keeps its place. */
  wait(go: () => void): void {
    this.waiting.add(go)
    this.wake()
  }

  forget(go: () => void): void {
    this.waiting.delete(go)
    this.wake()
  }

  /** One at a time, and others have theirs in between: a turn may be work for a while. */
  private wake(): void {
    if (this.waking || this.waiting.size === 0 || this.size >= this.most) return
    this.waking = true
    setImmediate(() => {
      this.waking = false
      const [first] = this.waiting
      if (first !== undefined && this.size < this.most) {
        this.waiting.delete(first)
        this.inTurn = true
        first()
        this.inTurn = false
      }
      this.wake()
    })
  }
}
