import { ClosedError, LockLostError } from '../../../core/errors.ts'
import type { Lease, ReleaseOutcome } from '../../../runtime/lease.ts'
import type { LeaseSet } from '../../../locks/lock-set.ts'
import type { Chapter } from '../diary.ts'
import { DRAIN_MS } from './checks/closes.ts'
import type { Place } from './place.ts'
import type { Made } from './context.ts'
import type { Call, Grant, Wanted } from './trace.ts'

/** Between two looks at a lease. */
const LOOK_MS = 40
/** How late a timer may be. */
const TOLERANCE_MS = 5
/** How much of a ttl is believed in, and how long an answer takes. */
const SAFE = 0.98
const ANSWERED_MS = 25

/** What a lease was asked for as. */
interface Asked {
  readonly call: Call
  readonly want: Wanted
  readonly made: Made
  /** Where it is written down for the checks of a scenario. */
  readonly chapter?: Chapter | undefined
  /** What it is a part of, or itself. */
  readonly whole: Lease | LeaseSet
}

/** One lease in a user's hands: watched for as long as it is believed in. */
export class Holding {
  readonly grant: Grant
  readonly made: Made
  readonly lease: Lease
  readonly whole: Lease | LeaseSet
  private readonly place: Place
  private readonly chapter: Chapter | undefined
  /** What was asked for. */
  private readonly ttl: number
  private believedUntil = 0
  private looks = 0

  constructor(place: Place, { call, want, made, chapter, whole }: Asked, lease: Lease) {
    const { name, mode, weight, capacity, nesting, inside } = want
    const { index: process, world, trace } = place
    const shares = nesting === 'shares' && inside?.token === lease.token
    this.place = place
    this.made = made
    this.lease = lease
    this.whole = whole
    this.ttl = call.ttl ?? made.ref.ttl ?? place.process.ttl
    this.chapter = shares ? undefined : chapter
    this.grant = {
      call,
      process,
      name,
      mode,
      weight,
      capacity,
      token: lease.token,
      from: world.now(),
      inside: shares ? inside : undefined,
      to: undefined,
      readsFrom: undefined,
      lost: false,
    }
    trace.grants.push(this.grant)
    place.given(this.grant)
    place.open.add(this)
    this.chapter?.acquired(lease)
    lease.signal.addEventListener('abort', this.lost)
    if (lease.signal.aborted) this.lost()
    // Also one that was warned of a close before it was given: nothing else tells when it ends.
    this.look()
  }

  /** Its owner is about to give it back. */
  ending(): void {
    this.check()
    this.chapter?.releasing()
    this.over()
  }

  /** Its owner has given it back. */
  released(outcome: ReleaseOutcome): void {
    this.chapter?.released(outcome)
  }

  downgrading(): void {
    this.chapter?.downgrading()
  }

  downgraded(outcome: 'downgraded' | 'unknown'): void {
    this.chapter?.downgraded(outcome)
  }

  lied(when: string): void {
    this.place.trace.found('signal', `${this.who} said that it is held ${when}`)
  }

  get who(): string {
    const { process, name, token } = this.grant
    return `p${process}'s lease on "${name}" (token ${token})`
  }

  /** Nothing ends it but its owner, and the close of its Holdfast. */
  get stays(): boolean {
    const { grant, made, place } = this
    const { call, inside, name } = grant
    const limited = call.maxHold !== undefined || made.ref.renew === false || inside !== undefined
    return place.calm && !limited && !place.trace.wasForced(name)
  }

  /** It is good for its ttl, and no longer; whole, where nobody renews it. */
  private lastsAsAsked(left: number): void {
    const { grant, made, place, ttl, now, looks } = this
    const { call, inside, from } = grant
    if (inside !== undefined) return
    if (left > ttl) place.trace.found('signal', `${this.who} says ${left} ms are left, and its ttl is ${ttl}`)
    if (made.ref.renew !== false || place.diary !== undefined) return
    if (now > from + ttl)
      place.trace.found(
        'signal',
        `${this.who} is held ${now - from} ms without renewals, and its ttl is ${ttl}`,
      )
    const whole = Math.min(ttl * SAFE - ANSWERED_MS, call.maxHold ?? Infinity)
    if (looks === 0 && place.calm && call.wants.length === 1 && left < whole - TOLERANCE_MS)
      place.trace.found('signal', `${this.who} was given with ${left} of ${ttl} ms left, and is not renewed`)
  }

  /** Its `maxHold` counts from the grant, by clocks that are right in a program's own world. */
  private endsInTime(): void {
    const { grant, place, now } = this
    const { maxHold = Infinity } = grant.call
    if (place.diary === undefined && now > grant.from + maxHold + TOLERANCE_MS)
      place.trace.found('signal', `${this.who} is held ${now - grant.from} ms, and its maxHold is ${maxHold}`)
  }

  /** Whoever has a lock when its Holdfast is closed has it until the drain is over. */
  private takenInTime(at: number): void {
    const { trace, index } = this.place
    const closed = trace.closeOf(index)
    if (closed === undefined || closed.options.release === false || !this.stays) return
    const until = closed.from + (closed.options.drain ?? DRAIN_MS)
    if (at < until) trace.found('close', `${this.who} was taken at ${at}, and the drain lasts until ${until}`)
  }

  private get now(): number {
    return this.place.world.now()
  }

  private readonly lost = (): void => {
    const { grant, lease, place } = this
    const reason: unknown = lease.signal.reason
    const closing = reason instanceof ClosedError && place.trace.closeOf(place.index) !== undefined
    if (!closing && !(reason instanceof LockLostError))
      place.trace.found('signal', `the signal of ${this.who} gave no LockLostError as its reason`)
    // Its Holdfast is being closed, and its owner has the lock until he is done, or the drain is.
    if (closing && lease.held) return
    if (grant.to === undefined) {
      this.takenInTime(this.now)
      if (this.stays && place.diary === undefined && place.trace.closeOf(place.index) === undefined)
        place.trace.found('signal', `${this.who} was lost at ${this.now}, and nothing took it`)
      grant.lost = true
      this.chapter?.aborted()
    }
    this.over()
  }

  /** `at`: since then, at the latest. */
  over(at: number = this.now): void {
    this.grant.to ??= at
    this.place.open.delete(this)
    this.lease.signal.removeEventListener('abort', this.lost)
  }

  private look(): void {
    if (this.grant.to !== undefined) return
    this.check()
    this.looks++
    const again = (): void => this.look()
    this.place.world.env.setTimer(() => this.place.process.env.reach(again), LOOK_MS, true)
  }

  /** Its own words must agree: what is not held any more has told its owner, and in time. */
  private check(): void {
    const { lease, now, looks } = this
    const { aborted } = lease.signal
    // In this order: a lease of which nothing is left now is not held a moment later.
    const left = lease.remaining()
    const { held } = lease
    if (held && left <= 0) this.lied('with nothing left of it')
    if (held) {
      this.lastsAsAsked(left)
      this.believedUntil = now + left
      this.chapter?.check(lease)
      this.endsInTime()
    }
    if (held || this.grant.to !== undefined) return
    const { trace, index } = this.place
    if (aborted) {
      // It was warned that its Holdfast is being closed. When exactly it ended, nobody was told.
      const { from, options } = trace.closeOf(index) ?? { from: 0, options: {} }
      this.takenInTime(now)
      this.grant.lost = true
      return this.over(Math.min(now, this.believedUntil, from + (options.drain ?? Infinity)))
    }
    if (!lease.signal.aborted)
      trace.found('signal', `${this.who} is not held, was not released, and its signal did not abort`)
    else if (!aborted && looks > 0 && now > this.believedUntil + TOLERANCE_MS)
      trace.found('signal', `the signal of ${this.who} did not abort before somebody asked`)
  }
}
