import type { Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { Deadline } from '../../transport/deadlines.ts'
import type { Reply } from './protocol.ts'

/** How many replies a request has; `stats`: lines until `END`. */
export type Wanted = number | 'stats'
/** Makes an answer of the replies. Must not throw. */
export type Read<T> = (replies: readonly Reply[]) => T | Promise<T>
export type Settle = (answer: unknown) => void

/** On which terms something is asked. */
export interface Terms<F = Unknown> {
  readonly deadline: number
  /** What time it is: whoever has just read the clock need not do so again. */
  readonly now: number
  /** How a failure is put, where it is part of a larger answer. */
  readonly failed: (failure: Unknown) => F
}

/** A request that was sent, or is about to be. */
export class Pending extends Deadline {
  readonly wanted: Wanted
  /** What the last reply has to repeat; 0 where the command cannot. */
  tag = 0
  readonly sentAt: number
  readonly deadline: number
  readonly replies: Reply[] = []
  readonly read: Read<unknown>
  readonly failed: (failure: Unknown) => unknown
  /** Null when nobody waits any more; the replies are still to be read. */
  settle: Settle | null
  next: Pending | null = null

  constructor(wanted: Wanted, terms: Terms<unknown>, read: Read<unknown>, settle: Settle) {
    super()
    this.wanted = wanted
    this.sentAt = terms.now
    this.deadline = terms.deadline
    this.failed = terms.failed
    this.read = read
    this.settle = settle
  }

  fail(failure: Unknown): void {
    this.settle?.(this.failed(failure))
  }

  expire(): void {
    this.fail(unknown(new Error(TOO_LATE)))
    this.settle = null
  }
}

export const TOO_LATE = 'memcached did not answer in time'
export const asItIs = <T>(answer: T): T => answer
