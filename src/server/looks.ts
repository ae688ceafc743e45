import type { MaybePromise } from '../core/contract.ts'
import { Failure } from './failure.ts'
import type { Principal } from './rights.ts'

/** Looks of one principal that wait. */
const MOST = 1000

/**
 * Lists and inspections of one's own memory take milliseconds each, and Node hears everybody who has said something before it
 * goes on: a hundred of them at once would keep renewals waiting for longer than leases last. So there is one in each turn of
 * the loop, whoever asks for it and through whichever door, and principals have theirs in turn.
 */
export class Looks {
  private readonly lines = new Map<Principal, (() => void)[]>()
  /** There was one in this turn of the loop. */
  private looked = false

  /** At once, or when its turn has come. */
  take<T>(principal: Principal, look: () => MaybePromise<T>): MaybePromise<T> {
    if (!this.looked) {
      this.looked = true
      setImmediate(this.next)
      return look()
    }
    const line = this.lines.get(principal) ?? []
    if (line.length >= MOST)
      throw new Failure('TOO_MANY', 'There are too many questions already.', { retryAfter: 1 })
    this.lines.set(principal, line)
    return new Promise((resolve, reject) => {
      line.push(() => {
        try {
          resolve(look())
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  }

  private readonly next = (): void => {
    const [first] = this.lines
    if (first === undefined) {
      this.looked = false
      return
    }
    const [principal, line] = first
    const look = line.shift()
    this.lines.delete(principal)
    if (line.length > 0) this.lines.set(principal, line)
    setImmediate(this.next)
    look?.()
  }
}
