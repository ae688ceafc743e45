import type { Principal } from './rights.ts'

/** For how long a store remembers a withdrawal. */
const KEPT_MS = 60_000
/** Of one principal, and of all together. When that is reached, only those who have more than their part of it are too many. */
const MOST = { each: 20_000, all: 100_000 }

type Counts = Map<Principal, number>

/**
 * Withdrawals that the store may still remember: each leaves a note there, also for a claim that nobody ever made, so that a
 * late copy of its request is harmless. They are counted by the minute, the present one and the one before it.
 */
export class Withdrawals {
  private readonly now: () => number
  private present: Counts = new Map()
  private former: Counts = new Map()
  private all = { present: 0, former: 0 }
  private minute = 0

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  add(principal: Principal): void {
    this.turn()
    this.present.set(principal, (this.present.get(principal) ?? 0) + 1)
    this.all.present++
  }

  areTooMany(principal: Principal): boolean {
    this.turn()
    const own = (this.present.get(principal) ?? 0) + (this.former.get(principal) ?? 0)
    if (own >= MOST.each) return true
    if (this.all.present + this.all.former < MOST.all) return false
    const principals = new Set([...this.present.keys(), ...this.former.keys()]).size
    return own >= MOST.all / (principals + 1)
  }

  private turn(): void {
    const minute = Math.floor(this.now() / KEPT_MS)
    if (minute === this.minute) return
    const next = minute === this.minute + 1
    this.former = next ? this.present : new Map<Principal, number>()
    this.all = { present: 0, former: next ? this.all.present : 0 }
    this.present = new Map()
    this.minute = minute
  }
}
