import type { Claim } from '../runtime/claim.ts'
import { OwnLease } from '../runtime/lease.ts'
import type { ClaimLease, ReleaseOutcome } from '../runtime/lease.ts'
import type { Mode } from './context.ts'

/** A re-entry: the same claim and the same token, held for as long as this lease is, whatever becomes of the outer one. */
export class NestedLease extends OwnLease {
  /** The first of them: nothing is nested in a nested one. */
  readonly outer: ClaimLease
  readonly mode: Mode

  constructor(outer: ClaimLease, mode: Mode, maxHold: number) {
    super()
    this.outer = outer
    this.mode = mode
    outer.enter(this)
    if (maxHold !== Infinity) this.limitTo(maxHold, outer.claim.lane.session.clock.now())
  }

  get name(): string {
    return this.outer.name
  }
  get token(): bigint {
    return this.outer.token
  }
  get claim(): Claim {
    return this.outer.claim
  }

  override get end(): number {
    return Math.min(this.outer.end, this.limit?.at ?? Infinity)
  }

  override lose(why: string): void {
    this.limit?.cancel()
    super.lose(why)
  }

  /** Only this lease ends. */
  limitReached(): void {
    this.lose('its maxHold is over')
    this.tell()
    // Cannot reject, see giveUp in holding.ts.
    this.outer.exit(this, this.claim.lane.session.clock.now()).catch(() => {})
  }

  protected expire(now: number): void {
    if (now >= this.outer.end) this.outer.expire(now)
    else this.limitReached()
  }

  protected leave(now: number): Promise<ReleaseOutcome> {
    this.limit?.cancel()
    return this.outer.exit(this, now)
  }
}
