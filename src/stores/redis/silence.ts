import type { Link } from './link.ts'

/** A connection on which so long nothing came back, although something was asked, is not waited for any longer. */
const SILENT_MS = 1_000

/**
 * Watches for servers that have fallen silent. A network that swallows packets does not close connections: the system
 * keeps them for a quarter of an hour, and a driver that sees no error goes on writing into the void, past every
 * failover. A connection of the store's own is then dropped, and the driver makes a new one; a client of the user's is
 * the user's (docs/stores/redis.md says what to set).
 */
export class Silence {
  private readonly link: Link
  /** Since when each server has owed an answer. */
  private readonly since = new Map<string, number>()

  constructor(link: Link) {
    this.link = link
  }

  /** A request about this key, sent so many milliseconds ago, was not answered in its time. */
  noAnswer(key: string, waited: number): void {
    if (!this.link.ready()) return
    const node = this.link.nodeOf(key)
    const now = performance.now()
    const since = Math.min(this.since.get(node) ?? Infinity, now - waited)
    if (now - since < SILENT_MS) {
      this.since.set(node, since)
      return
    }
    this.since.delete(node)
    this.link.reset(key)
  }

  /** Whether any server is suspected: while none is, answers need not be reported. */
  get suspects(): boolean {
    return this.since.size > 0
  }

  /** The server of this key has answered something. */
  answer(key: string): void {
    this.since.delete(this.link.nodeOf(key))
  }
}
