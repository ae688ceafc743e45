import { WITHDRAWN_MS } from '../../core/claim-queue.ts'
import type { ClaimRef, ClaimRequest, ReleaseResult, RenewRequest, Store } from '../../core/contract.ts'

/** Touched after that, a withdrawn id's memory is gone. */
const WITHDRAWN_KEPT_MS = WITHDRAWN_MS + 1000
const NO_TIMEOUT = 0

interface Entry {
  readonly name: string
  end: number
}

interface Waiter {
  readonly name: string
  /** For how long its grant lasts until it is picked up. */
  readonly pickUp: number
  /** If it says nothing. */
  readonly gone: number
}

interface Withdrawn {
  readonly claim: ClaimRef
  readonly at: number
}

/**
 * When the claims of an embedded store end. The store itself looks at a name only when somebody asks about it; this
 * lets a sweep ask about those that have run out, so that their memory is freed and whoever waits is granted at once.
 */
export class Ledger {
  private readonly store: Store
  private readonly ends = new Map<string, Entry>()
  private readonly waiters = new Map<string, Waiter>()
  /** In order of time. */
  private readonly withdrawals: Withdrawn[] = []

  constructor(store: Store) {
    this.store = store
  }

  held({ name, id }: ClaimRef, end: number): void {
    this.waiters.delete(id)
    const entry = this.ends.get(id)
    if (entry === undefined) this.ends.set(id, { name, end })
    else entry.end = end
  }

  queued({ name, id, ttl, patience }: ClaimRequest | RenewRequest, now: number): void {
    this.waiters.set(id, { name, pickUp: Math.min(ttl, patience), gone: now + patience })
  }

  pickUpTime(id: string): number {
    return this.waiters.get(id)?.pickUp ?? 0
  }

  delete({ id }: ClaimRef): void {
    this.ends.delete(id)
    this.waiters.delete(id)
  }

  withdrawn(claim: ClaimRef, now: number): void {
    this.withdrawals.push({ claim: { name: claim.name, id: claim.id }, at: now })
  }

  /** 0 when nothing is held. */
  furthestEnd(): number {
    let furthest = 0
    for (const { end } of this.ends.values()) if (end > furthest) furthest = end
    return furthest
  }

  sweep(now: number): void {
    for (const [id, { name, end }] of this.ends) {
      if (end > now) continue
      this.ends.delete(id)
      this.touch({ name, id })
    }
    for (const [id, { name, gone }] of this.waiters) {
      if (gone > now) continue
      this.waiters.delete(id)
      this.touch({ name, id })
    }
    let old = 0
    for (const { claim, at } of this.withdrawals) {
      if (at + WITHDRAWN_KEPT_MS > now) break
      this.touch(claim)
      old++
    }
    if (old > 0) this.withdrawals.splice(0, old)
  }

  /** A release of what is not there any more changes nothing, and makes the store look at the name. */
  private touch(claim: ClaimRef): void {
    void (this.store.release(claim, undefined, NO_TIMEOUT) as ReleaseResult)
  }
}
