/**
 * How many guarded transactions may be open at once. Each keeps a connection of the pool to its end, and if they had all
 * of them, no lease could be renewed meanwhile: neither theirs nor anybody else's of the process.
 */
export class Room {
  private readonly connections: number
  private kept = 0
  private used = 0
  private readonly waiting: (() => void)[] = []

  constructor(connections: number) {
    this.connections = connections
  }

  /** Connections that something else always needs. At least one transaction has room all the same. */
  keep(connections: number): void {
    this.kept = Math.max(this.kept, connections)
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.hasMore) this.used++
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await work()
    } finally {
      this.used--
      while (this.waiting.length > 0 && this.hasMore) {
        this.used++
        this.waiting.shift()?.()
      }
    }
  }

  private get hasMore(): boolean {
    return this.used < Math.max(1, this.connections - this.kept)
  }
}

const rooms = new WeakMap<object, Room>()

/** One for all stores on a pool: it is the pool that must not run out. */
export function roomIn(pool: object, connections: number, kept: number): Room {
  let room = rooms.get(pool)
  if (room === undefined) rooms.set(pool, (room = new Room(connections)))
  room.keep(kept)
  return room
}
