import type { Link } from './link.ts'

/** A connection on which so long nothing came back, although something was asked, is not waited for any longer. */
const SILENT_MS = 1_000
/** Nor is one that has been opened and not become usable for so long. */
const NOT_READY_MS = 1_500

const NOT_READY = 'not ready'

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

  /** A request about this key, made so many milliseconds ago, was not answered in its time. */
  noAnswer(key: string, waited: number): void {
    const ready = this.link.ready()
    if (ready) this.since.delete(NOT_READY)
    const where = ready ? this.link.nodeOf(key) : NOT_READY
    const now = performance.now()
    const since = Math.min(this.since.get(where) ?? Infinity, now - waited)
    if (now - since < (ready ? SILENT_MS : NOT_READY_MS)) {
      this.since.set(where, since)
      return
    }
    this.since.delete(where)
    this.link.reset(key)
  }

  /** The server of this key takes no writes: it is a replica now, and the connection has to find the primary. */
  refused(key: string): void {
    this.link.reset(key)
  }

  /** Whether any server is suspected: while none is, answers need not be reported. */
  get suspects(): boolean {
    return this.since.size > 0
  }

  /** The server of this key has answered something. */
  answer(key: string): void {
    this.since.delete(NOT_READY)
    this.since.delete(this.link.nodeOf(key))
  }
}
