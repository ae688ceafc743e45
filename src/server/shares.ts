import type { MaybePromise } from '../core/contract.ts'
import type { Principal } from './rights.ts'

/** Milliseconds. */
const SLICE = 20

/**
 * What the sessions of one principal, and its requests with many operations, may use of a turn of the loop, all together. Each by itself would have its slice, and
 * there may be thousands of them between two looks at somebody else's.
 */
export class Share {
  private used = 0
  private readonly waiting = new Set<() => void>()
  private turning = false
  private inTurn = false

  /** Milliseconds, for who asks now: others may wait for what there is. */
  get left(): number {
    return this.waiting.size > 0 && !this.inTurn ? 0 : SLICE - this.used
  }

  /** At once, or when there is time for it. */
  take<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    if (this.left > 0) return this.timed(work)
    return new Promise((resolve, reject) => {
      this.wait(() => {
        try {
          resolve(this.timed(work))
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  }

  private timed<T>(work: () => T): T {
    const began = performance.now()
    try {
      return work()
    } finally {
      this.spend(performance.now() - began)
    }
  }

  spend(ms: number): void {
    this.used += ms
    // Not each time: another turn of the loop for every packet would cost more than it is worth.
    if (this.used > SLICE / 2) this.turn()
  }

  /** `go` is called once, when there is time for it; who waits already keeps its place. */
  wait(go: () => void): void {
    this.waiting.add(go)
    this.turn()
  }

  forget(go: () => void): void {
    this.waiting.delete(go)
  }

  private turn(): void {
    if (this.turning) return
    this.turning = true
    setImmediate(() => {
      this.turning = false
      this.used = 0
      this.inTurn = true
      for (const go of this.waiting) {
        if (this.used >= SLICE) break
        this.waiting.delete(go)
        go()
      }
      this.inTurn = false
      if (this.waiting.size > 0) this.turn()
    })
  }
}

export class Shares {
  private readonly shares = new WeakMap<Principal, Share>()

  of(principal: Principal): Share {
    let share = this.shares.get(principal)
    if (share === undefined) this.shares.set(principal, (share = new Share()))
    return share
  }
}
