import { LockLostError } from '../core/errors.ts'
import { checkMs, MAX_MS } from '../core/arguments.ts'
import { tellClaim } from '../core/leased-claim.ts'
import type { Claim } from './claim.ts'
import { Deadline } from './deadlines.ts'
import type { Downgrade } from './downgrading.ts'
import { events } from './events.ts'

/** `expired`: the lease had ended before. `unknown`: the store did not answer; the lock is cleaned up in the background. */
export type ReleaseOutcome = 'released' | 'expired' | 'unknown'

export interface AssertHeldOptions {
  /** Milliseconds that the lease must still be good for. */
  readonly atLeast?: number
}

/** A lock in hand: good until it is released or lost. */
export interface Lease {
  readonly name: string
  /** Larger than the token of every earlier grant of this name that it excludes. Unique. */
  readonly token: bigint
  /** Aborts the moment the lease is lost, with a LockLostError as its reason. Not on release. */
  readonly signal: AbortSignal
  /** Whether the lock is held now, by this process's clocks. */
  readonly held: boolean
  /** Milliseconds for which the lease is good if no renewal succeeds any more; 0 when it has ended. */
  remaining(): number
  /**
   * Throws a LockLostError unless the lease is held, and will be for `atLeast` milliseconds without renewal. Looks at the
   * clocks, asks nobody: right also just after the event loop was blocked, when no timer could fire yet.
   */
  assertHeld(options?: AssertHeldOptions): void
  /** Gives the lock up. Never throws; a second call answers the same. */
  release(): Promise<ReleaseOutcome>
  [Symbol.asyncDispose](): Promise<void>
}

type LeaseState = 'held' | 'released' | 'lost'

/** A lease on a claim of this process. */
export class ClaimLease implements Lease {
  readonly token: bigint
  readonly claim: Claim
  /** It was a writer's, and is a reader's since this began. */
  downgrade: Downgrade | null = null
  private readonly since: number
  private state: LeaseState = 'held'
  private limit: HoldLimit | null = null
  private controller: AbortController | null = null
  private reason: LockLostError | null = null
  private releasing: Promise<ReleaseOutcome> | null = null

  constructor(claim: Claim, token: bigint, now: number, maxHold: number) {
    this.claim = claim
    this.token = token
    this.since = now
    if (maxHold !== Infinity) {
      this.limit = new HoldLimit(this)
      claim.lane.session.expiries.set(this.limit, now + maxHold, maxHold)
    }
  }

  get name(): string {
    return this.claim.lane.name
  }

  // An AbortController costs more than the rest of a lease: most leases never need theirs.
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController()
      this.check()
      if (this.reason !== null) this.controller.abort(this.reason)
    }
    return this.controller.signal
  }

  get held(): boolean {
    return this.check() === 'held'
  }

  remaining(): number {
    if (this.check() !== 'held') return 0
    const now = this.claim.lane.session.clock.now()
    return Math.max(0, Math.min(this.claim.validUntil, this.limit?.at ?? Infinity) - now)
  }

  assertHeld({ atLeast = 0 }: AssertHeldOptions = {}): void {
    if (atLeast !== 0) checkMs('atLeast', atLeast, { min: 0, max: MAX_MS })
    const state = this.check()
    if (state === 'lost') throw this.reason ?? this.lostError('it has ended')
    if (state === 'released') throw this.lostError('it was released')
    if (atLeast > 0 && this.remaining() < atLeast)
      throw this.lostError(`less than ${atLeast} ms of it are left`)
  }

  release(): Promise<ReleaseOutcome> {
    this.releasing ??= this.releaseOnce()
    return this.releasing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** The claim is gone, or the lease has reached its limit. */
  lose(why: string): void {
    if (this.state !== 'held') return
    this.state = 'lost'
    this.limit?.cancel()
    this.reason = this.lostError(why)
    const { session } = this.claim.lane
    if (events.lost.hasSubscribers) {
      const held = session.clock.now() - this.since
      events.lost.publish({
        name: this.name,
        store: session.store.kind,
        token: this.token,
        held,
        reason: why,
      })
    }
    this.controller?.abort(this.reason)
    this.downgrade?.end()
  }

  /** `maxHold` is over: only this lease ends; the claim goes to whoever is next. */
  limitReached(): void {
    this.lose('its maxHold is over')
    // Cannot reject, see giveUp in holding.ts.
    const { lane } = this.claim
    lane.finish(this.claim, this, lane.session.clock.now()).catch(() => {})
  }

  private releaseOnce(): Promise<ReleaseOutcome> {
    const now = this.claim.lane.session.clock.now()
    if (this.check(now) !== 'held') return EXPIRED
    this.state = 'released'
    this.limit?.cancel()
    this.downgrade?.end()
    const { lane } = this.claim
    if (events.released.hasSubscribers) {
      const held = now - this.since
      events.released.publish({ name: this.name, store: lane.session.store.kind, token: this.token, held })
    }
    return lane.finish(this.claim, this, now)
  }

  private check(now: number = this.claim.lane.session.clock.now()): LeaseState {
    if (this.state !== 'held') return this.state
    const { claim, limit } = this
    if (now >= claim.validUntil) claim.lane.session.upkeep.expire(claim)
    else if (limit !== null && now >= limit.at) this.limitReached()
    return this.state
  }

  private lostError(why: string): LockLostError {
    const { kind } = this.claim.lane.session.store
    return new LockLostError(
      `The lease on "${this.name}" is not held: ${why}. Another process may hold the lock; stop, or check the token at the resource.`,
      { lock: this.name, store: kind, token: this.token },
    )
  }
}

tellClaim(ClaimLease, ({ claim }) => claim)

class HoldLimit extends Deadline {
  private readonly lease: ClaimLease

  constructor(lease: ClaimLease) {
    super()
    this.lease = lease
  }

  due(): void {
    this.lease.limitReached()
  }
}

export const RELEASED: Promise<ReleaseOutcome> = Promise.resolve('released')
export const EXPIRED: Promise<ReleaseOutcome> = Promise.resolve('expired')
