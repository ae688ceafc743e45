import type { Clock } from './clock.ts'
import { systemEnv } from './env.ts'
import type { Env } from './env.ts'

/** So many are told that there is nothing for them before the event loop has its turn again. */
const REFUSALS_AT_ONCE = 32

/** So many leases and answers are given before the event loop has its turn again. */
const GRANTS_AT_ONCE = 1024
/** And no more once so much time has gone by in which it did not. */
const GRANTS_WITHIN_MS = 50
/** Between two of them that something else was done, or that the event loop had its turn. */
const APART_MS = 1

/**
 * Sees to it that the event loop has its turn also where every answer is there at once: a program that goes on at once, in a loop, would keep
 * its own timers, sockets and signals waiting.
 */
export class LoopTurns {
  private readonly env: Env
  private readonly clock: Clock
  private refusals = 0
  private grants = 0
  /** By the monotonic clock. */
  private lastGrant = 0
  /** Since when the event loop has not had its turn, as far as that is looked at. */
  private awaitedSince: number | null = null

  constructor(env: Env, clock: Clock) {
    this.env = env
    this.clock = clock
  }

  /**
   * Somebody is told that there is nothing for him. Nobody may have been asked, so that no time has passed: a program that tries again at
   * once, in a loop, would keep its own timers, sockets and signals waiting, and with them whatever would end the loop.
   */
  refuse(tell: () => void): void {
    if (++this.refusals % REFUSALS_AT_ONCE === 0) this.env.defer(tell)
    else tell()
  }

  /**
   * Whether the event loop is to have its turn before one more lease or answer is given. As for refusals: a program that takes one lock after the
   * other, of a store that answers at once, would have nothing renewed. Time that somebody else makes goes on without that.
   */
  isDue(): boolean {
    if (this.env !== systemEnv) return false
    const late = this.isLate()
    return ++this.grants % GRANTS_AT_ONCE === 0 || late
  }

  /** Whether it has not had its turn for long, by what the clock said when it was last read. */
  isLate(): boolean {
    if (this.env !== systemEnv) return false
    const { mono } = this.clock
    const apart = mono - this.lastGrant
    this.lastGrant = mono
    const since = this.awaitedSince
    // Sections that compute take longer than all else here. To look at each would cost those that take no time.
    if (since === null && apart >= APART_MS) this.waitForTurn(mono)
    return since !== null && mono - since >= GRANTS_WITHIN_MS
  }

  /** After it had its turn. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.env.defer(resolve))
  }

  private waitForTurn(mono: number): void {
    this.awaitedSince = mono
    this.env.defer(() => (this.awaitedSince = null))
  }

  /** A caller did not have to wait. */
  given<T>(answer: T): Promise<T> {
    if (!this.isDue()) return Promise.resolve(answer)
    return new Promise((resolve) => this.env.defer(() => resolve(answer)))
  }
}
