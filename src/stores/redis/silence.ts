import type { Driver } from './client/driver.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/** A connection on which so long nothing came back, although something was asked, is not waited for any longer. */
const SILENT_MS = 1_000
/** Nor is one that has been opened and not become usable for so long. */
const NOT_READY_MS = 1_500

const NOT_READY = 'not ready'

/** Many may be refused by one connection in the same moment: one new connection is the answer to all of them. */
const TOGETHER_MS = 100

/**
 * Watches for servers that have fallen silent. A network that swallows packets does not close connections: the system
 * keeps them for a quarter of an hour, and a driver that sees no error goes on writing into the void, past every
 * failover. A connection of the store's own is then dropped, and the driver makes a new one; a client of the user's is
 * the user's (docs/stores/redis.md says what to set).
 */
export class Silence {
  private readonly driver: Driver
  /** Since when each server has owed an answer. */
  private readonly since = new Map<string, number>()
  /** When the connection to each server was last dropped. What was asked before that says nothing about the new one. */
  private readonly droppedAt = new Map<string, number>()

  constructor(driver: Driver) {
    this.driver = driver
  }

  /** A request about this key, made so many milliseconds ago, was not answered in its time. */
  noAnswer(key: string, waited: number): void {
    const ready = this.driver.ready()
    if (ready) this.since.delete(NOT_READY)
    const node = this.driver.nodeOf(key)
    const where = ready ? node : NOT_READY
    const now = performance.now()
    const asked = Math.max(now - waited, this.droppedAt.get(node) ?? -Infinity)
    const since = Math.min(this.since.get(where) ?? Infinity, asked)
    if (now - since < (ready ? SILENT_MS : NOT_READY_MS)) {
      this.since.set(where, since)
      return
    }
    this.since.delete(where)
    this.drop(key, node, now)
  }

  /** The server of this key takes no writes: it is a replica now, and the connection has to find the primary. */
  refused(key: string): void {
    const node = this.driver.nodeOf(key)
    const now = performance.now()
    if (now - (this.droppedAt.get(node) ?? -Infinity) >= TOGETHER_MS) this.drop(key, node, now)
  }

  private drop(key: string, node: string, now: number): void {
    this.droppedAt.set(node, now)
    this.driver.reset(key)
  }

  /** Whether any server is suspected: while none is, answers need not be reported. */
  get suspects(): boolean {
    return this.since.size > 0
  }

  /** The server of this key has answered something. */
  answer(key: string): void {
    this.since.delete(NOT_READY)
    this.since.delete(this.driver.nodeOf(key))
  }
}
