import { LockLostError } from '../core/errors.ts'
import { checkMs, checkOptions, MAX_MS } from '../core/arguments.ts'
import { tellClaim } from '../core/leased-claim.ts'
import { printable, shown } from '../core/printing.ts'
import { inBackground } from './background.ts'
import type { Claim } from './claim.ts'
import { Deadline } from './deadlines.ts'
import type { Downgrade } from './downgrading.ts'
import { events } from './events.ts'

/** `expired`: the lease had ended before. `unknown`: the store did not answer; the lock is cleaned up in the background. */
export type ReleaseOutcome = 'released' | 'expired' | 'unknown'

export interface AssertHeldOptions {
  /** Milliseconds that the lease must still be good for. */
  readonly atLeast?: number | undefined
}

/** A lock in hand: good until it is released or lost. */
export interface Lease {
  readonly name: string
  /** Larger than the token of every earlier grant of this name that it excludes. Unique. */
  readonly token: bigint
  /**
   * Aborts the moment the lease is lost, with a LockLostError as its reason; or when the Holdfast is closing, with a ClosedError: then
   * the lease is still held, for the drain at most, or for as long as it lasts without renewal. Not on release.
   */
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

/** What a lease is in itself, whoever else shares its claim: held, released or lost, once and for all. */
export abstract class OwnLease implements Lease {
  abstract readonly name: string
  abstract readonly token: bigint
  /** The claim that it lives by. */
  abstract readonly claim: Claim
  protected state: LeaseState = 'held'
  protected limit: HoldLimit | null = null
  private controller: AbortController | null = null
  private reason: LockLostError | null = null
  protected warning: Error | null = null
  private releasing: Promise<ReleaseOutcome> | null = null

  // An AbortController costs more than the rest of a lease: most leases never need theirs.
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController()
      this.check()
      const reason = this.reason ?? this.warning
      if (reason !== null) this.controller.abort(reason)
    }
    return this.controller.signal
  }

  get held(): boolean {
    return this.check() === 'held'
  }

  /** Neither released nor known to be lost. Looks at no clock and ends nothing, for the garbage collector asks at any moment. */
  get unfinished(): boolean {
    return this.state === 'held'
  }

  /** It is not renewed, or not for ever, whatever its owner does. */
  get endsByItself(): boolean {
    return this.limit !== null || !this.claim.lane.renew
  }

  remaining(): number {
    if (this.check() !== 'held') return 0
    return Math.max(0, this.end - this.claim.lane.session.clock.now())
  }

  assertHeld(options?: AssertHeldOptions): void {
    const atLeast = options === undefined ? 0 : checkedAtLeast(options)
    const state = this.check()
    if (state === 'lost') throw this.reason ?? this.lostError('it has ended')
    if (state === 'released') throw this.lostError('it was released')
    if (atLeast > 0 && this.remaining() < atLeast)
      throw this.lostError(`less than ${atLeast} ms of it are left`)
  }

  release(): Promise<ReleaseOutcome> {
    // Whoever is told of the release may call it again, before the first call has its answer.
    if (this.releasing === null && this.state === 'released') return NOW.then(() => this.release())
    this.releasing ??= this.releaseOnce()
    return this.releasing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** Its owner is asked to come to an end. It is still held. */
  warn(reason: Error): void {
    this.warning = reason
    const { controller } = this
    if (this.state === 'held' && controller !== null) inBackground(() => controller.abort(reason))
  }

  /** It is lost from here on. Whoever listens is told by `tell`, once everybody who lost the same claim knows. */
  lose(why: string): void {
    if (this.state !== 'held') return
    this.state = 'lost'
    this.reason = this.lostError(why)
  }

  /** Its signal aborts. In nobody's section, request or trace: whoever found out that it is lost may be a stranger. */
  tell(): void {
    const { controller, reason } = this
    if (controller !== null && reason !== null) inBackground(() => controller.abort(reason))
  }

  /** `maxHold` is over. */
  abstract limitReached(): void

  /** When it ends by our clocks, unless it is renewed. */
  get end(): number {
    return Math.min(this.claim.validUntil, this.limit?.at ?? Infinity)
  }

  /** Ends what is over. */
  protected abstract expire(now: number): void
  /** Its part in the claim is given up. */
  protected abstract leave(now: number): Promise<ReleaseOutcome>

  protected check(now: number = this.claim.lane.session.clock.now()): LeaseState {
    if (this.state === 'held' && now >= this.end) this.expire(now)
    return this.state
  }

  /** Its `maxHold` begins. */
  limitTo(maxHold: number, now: number): void {
    this.limit = new HoldLimit(this)
    this.claim.lane.session.expiries.set(this.limit, now + maxHold, maxHold)
  }

  private releaseOnce(): Promise<ReleaseOutcome> {
    const now = this.claim.lane.session.clock.now()
    if (this.check(now) !== 'held') return EXPIRED
    this.state = 'released'
    return this.leave(now)
  }

  private lostError(why: string): LockLostError {
    const { kind } = this.claim.lane.session.store
    return new LockLostError(
      `The lease on "${this.name}" is not held: ${why}. Another process may hold the lock; stop, or check the token at the resource.`,
      { lock: this.name, store: kind, token: this.token },
    )
  }
}

tellClaim(OwnLease, ({ claim }) => claim)

/**
 * A lease on a claim of this process. Others may be nested in it: the claim is held until the last of them is released, and
 * `maxHold` counts from the first and ends them all.
 */
export class ClaimLease extends OwnLease {
  readonly token: bigint
  readonly claim: Claim
  /** It was a writer's, and is a reader's since this began. */
  downgrade: Downgrade | null = null
  /** Those nested in it that are held. Most have none. */
  nested: Set<OwnLease> | null = null
  private readonly since: number

  constructor(claim: Claim, token: bigint, now: number, maxHold: number) {
    super()
    this.claim = claim
    this.token = token
    this.since = now
    if (maxHold !== Infinity) this.limitTo(maxHold, now)
  }

  get name(): string {
    return this.claim.lane.name
  }

  /** Nobody has it any more, nor one that is nested in it. */
  get over(): boolean {
    return this.state === 'lost' || (this.state === 'released' && !this.shared)
  }

  enter(lease: OwnLease): void {
    this.nested ??= new Set()
    this.nested.add(lease)
    if (this.warning !== null) lease.warn(this.warning)
  }

  /** A nested one is done with. */
  exit(lease: OwnLease, now: number): Promise<ReleaseOutcome> {
    // One that was lost has given its claim up by then, and knows of none nested in it any more, also if it had been released before: to
    // give the claim up twice would take it from whoever has it now.
    if (this.nested?.delete(lease) !== true) return RELEASED
    return this.shared || this.state !== 'released' ? RELEASED : this.finish(now)
  }

  override warn(reason: Error): void {
    super.warn(reason)
    for (const lease of this.nested ?? []) lease.warn(reason)
  }

  override lose(why: string): void {
    if (this.over) return
    this.limit?.cancel()
    super.lose(why)
    for (const lease of this.nested ?? []) lease.lose(why)
  }

  /** The event. Only once everybody who lost the same claim knows, for subscribers may look at their leases. */
  announce(why: string): void {
    if (!events.lost.hasSubscribers) return
    const { session } = this.claim.lane
    const held = session.clock.now() - this.since
    const { name, token } = this
    inBackground(() =>
      events.lost.publish(shown({ name, store: session.store.kind, token, held, reason: why })),
    )
  }

  override tell(): void {
    const { nested } = this
    this.nested = null
    super.tell()
    for (const lease of nested ?? []) lease.tell()
    this.downgrade?.end()
  }

  /** Only this lease and those nested in it end; the claim goes to whoever is next. */
  limitReached(): void {
    const why = 'its maxHold is over'
    this.lose(why)
    this.announce(why)
    this.tell()
    const { lane } = this.claim
    // Cannot reject, see giveUp in holding.ts.
    lane.finish(this.claim, this, lane.session.clock.now()).catch(() => {})
  }

  /** The time of the claim, or of this lease, is over. */
  expire(now: number): void {
    const { claim } = this
    if (now >= claim.validUntil) claim.lane.session.upkeep.expire(claim)
    else this.limitReached()
  }

  protected leave(now: number): Promise<ReleaseOutcome> {
    const outcome = this.shared ? RELEASED : this.finish(now)
    this.downgrade?.end()
    return outcome
  }

  private get shared(): boolean {
    return this.nested !== null && this.nested.size > 0
  }

  /** Nobody uses it any more. */
  private finish(now: number): Promise<ReleaseOutcome> {
    this.limit?.cancel()
    const { lane } = this.claim
    if (events.released.hasSubscribers) {
      const held = now - this.since
      const { name, token } = this
      events.released.publish(shown({ name, store: lane.session.store.kind, token, held }))
    }
    return lane.finish(this.claim, this, now)
  }
}

const ASSERT_OPTIONS: readonly (keyof AssertHeldOptions)[] = ['atLeast']

function checkedAtLeast(options: AssertHeldOptions): number {
  checkOptions(options, ASSERT_OPTIONS, 'atLeast')
  const { atLeast = 0 } = options
  if (atLeast !== 0) checkMs('atLeast', atLeast, { min: 0, max: MAX_MS })
  return atLeast
}

class HoldLimit extends Deadline {
  private readonly lease: OwnLease

  constructor(lease: OwnLease) {
    super()
    this.lease = lease
  }

  due(): void {
    this.lease.limitReached()
  }
}

printable(OwnLease, 'Lease', (lease) => {
  const { name, token, held } = lease
  return { name, token, held, remaining: Math.floor(lease.remaining()) }
})

const NOW = Promise.resolve()
export const RELEASED: Promise<ReleaseOutcome> = Promise.resolve('released')
export const EXPIRED: Promise<ReleaseOutcome> = Promise.resolve('expired')
