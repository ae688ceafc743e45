/**
 * How many guarded transactions may be open at once. Each keeps a connection of the pool to its end, and if they had all
 * of them, no lease could be renewed meanwhile: neither theirs nor anybody else's of the process.
 */
export class Room {
  private left: number
  private readonly waiting: (() => void)[] = []

  /** `kept`: connections that something else always needs. At least one transaction has room all the same. */
  constructor(connections: number, kept: number) {
    this.left = Math.max(1, connections - kept)
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.left > 0) this.left--
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.left++
      else next()
    }
  }
}
