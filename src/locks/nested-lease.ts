import { claimBehind, tellClaim } from '../core/leased-claim.ts'
import type { AssertHeldOptions, Lease, ReleaseOutcome } from '../runtime/lease.ts'

/** The lease itself, or the one that it is nested in. */
export function outermost(lease: Lease): Lease {
  return lease instanceof NestedLease ? outermost(lease.outer) : lease
}

/** A re-entry: the outer lease under another hand. Releasing it leaves the outer one as it is. */
export class NestedLease implements Lease {
  readonly outer: Lease
  private released = false

  constructor(outer: Lease) {
    this.outer = outer
  }

  get name(): string {
    return this.outer.name
  }
  get token(): bigint {
    return this.outer.token
  }
  get signal(): AbortSignal {
    return this.outer.signal
  }
  get held(): boolean {
    return !this.released && this.outer.held
  }

  remaining(): number {
    return this.released ? 0 : this.outer.remaining()
  }

  assertHeld(options?: AssertHeldOptions): void {
    this.outer.assertHeld(options)
  }

  release(): Promise<ReleaseOutcome> {
    const outcome: ReleaseOutcome = this.released || this.outer.held ? 'released' : 'expired'
    this.released = true
    return Promise.resolve(outcome)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

tellClaim(NestedLease, ({ outer }) => claimBehind(outer))
