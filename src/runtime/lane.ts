import type { Held, ReleaseResult, StoreEvent, Unknown } from '../core/contract.ts'
import { onAbort } from './abort-listeners.ts'
import { abandon, answered, ask, askNow, told } from './asking.ts'
import { Claim } from './claim.ts'
import type { ClaimState } from './claim.ts'
import { events } from './events.ts'
import * as errors from './lane-errors.ts'
import type { LaneKind } from './lane-kind.ts'
import { ClaimLease, EXPIRED, RELEASED } from './lease.ts'
import type { Lease, ReleaseOutcome } from './lease.ts'
import type { Session } from './session.ts'
import { Task, TaskLine } from './task.ts'
import { blockFor, mayPassOn, YIELD_EVERY } from './turn.ts'

export interface WaitOptions {
  readonly wait: number
  readonly maxHold: number
  readonly signal: AbortSignal | undefined
}

/**
 * The line of this process's tasks for one name and one kind of claim, and the claims that serve it. To the store a lane
 * is one contender: it claims for the first in line and hands what it got from task to task. Readers and writers of one
 * process are two lanes, and the store decides between them as between strangers.
 */
export class Lane {
  readonly session: Session
  readonly name: string
  readonly kind: LaneKind
  /** Asking, queued and held. */
  claims: readonly Claim[] = NO_CLAIMS
  /** Another lane of the same name. */
  sibling: Lane | null = null
  /** Why the store gave no answer the last time, if so. */
  failure: Unknown | null = null
  /** How many sections the last turn had: the next one will want about as many tokens. */
  lastTurn = 0
  /** Made when the first task comes: most locks are never waited for. */
  private line: TaskLine = NO_LINE

  constructor(session: Session, name: string, kind: LaneKind) {
    this.session = session
    this.name = name
    this.kind = kind
  }

  get capacity(): number {
    return this.kind.capacity
  }
  get ttl(): number {
    return this.kind.ttl
  }
  get renew(): boolean {
    return this.kind.renew
  }
  get shared(): boolean {
    return this.kind.shared
  }

  /** Nobody holds, waits or asks through it. */
  get idle(): boolean {
    return this.line.length === 0 && this.claims.length === 0
  }

  /** How many tasks are in line. */
  get waiting(): number {
    return this.line.length
  }

  claimsIn(wanted: ClaimState): readonly Claim[] {
    return this.claims.filter(({ state }) => state === wanted)
  }

  acquire({ wait, maxHold, signal }: WaitOptions): Promise<Lease> {
    const refusal = this.refusal(signal)
    if (refusal !== null) return Promise.reject(refusal)
    const { clock, waits, store } = this.session
    const now = clock.now()
    const lease = this.join(now, maxHold) ?? this.claimAtOnce(now, maxHold)
    if (lease !== null) return Promise.resolve(lease)
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since: now, maxHold }, resolve as Task['resolve'], reject)
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      waits.set(task, now + wait, wait)
      if (this.line === NO_LINE) this.line = new TaskLine()
      this.line.push(task)
      if (events.waiting.hasSubscribers) events.waiting.publish({ name: this.name, store: store.kind })
      this.pump()
    })
  }

  /** One attempt; null when somebody else has it, or stands before us. */
  tryAcquire({ maxHold, signal }: Omit<WaitOptions, 'wait'>): Promise<Lease | null> {
    const refusal = this.refusal(signal)
    if (refusal !== null) return Promise.reject(refusal)
    const now = this.session.clock.now()
    const lease = this.join(now, maxHold)
    if (lease !== null) return Promise.resolve(lease)
    if (this.line.length > 0 || this.claims.length >= this.kind.most) return NOTHING
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since: now, maxHold }, resolve, reject)
      const claim = this.newClaim()
      claim.only = task
      task.only = claim
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      ask(claim, now)
    })
  }

  /** The store spoke of its own accord. */
  told(event: Exclude<StoreEvent, { kind: 'gap' }>): void {
    if (event.kind === 'freed') {
      for (const claim of this.claims) askNow(claim)
      return
    }
    const claim = this.claims.find(({ id }) => id === event.id)
    if (claim === undefined) return
    if (event.kind === 'granted') told(claim, event)
    else if (event.kind === 'contended') claim.contended = true
    else this.session.upkeep.lose(claim, 'it was taken away by force')
  }

  /** The claim is ours from here on, until `end` by our clocks. */
  hold(claim: Claim, now: number, end: number, grant: Omit<Held, 'kind'>): void {
    claim.state = 'held'
    claim.attempts = 0
    claim.tokens = 0
    claim.validUntil = end
    claim.contended = grant.contended
    claim.takeTokens(grant.token, grant.count)
    claim.since = now
  }

  /** Whom a new grant is for. */
  serveFirst(claim: Claim, now: number): void {
    const { only } = claim
    if (claim.reserved) return
    if (only === null) return this.serve(claim, now)
    claim.only = null
    only.give(this.lend(claim, now, only.since, only.maxHold))
    this.resume(claim)
  }

  /** A renewal was answered, or the event loop had its chance: go on with the turn. */
  resume(claim: Claim): void {
    if (claim.state !== 'held' || (claim.users > 0 && !this.shared)) return
    const now = this.session.clock.now()
    if (this.line.length > 0 && mayPassOn(claim, now)) return this.passOn(claim, now)
    if (claim.users === 0) this.giveUpInBackground(claim)
  }

  /** The store did not answer a renewal. A claim that nobody uses just then is not worth holding on to. */
  renewalFailed(claim: Claim): void {
    if (claim.users === 0) this.giveUpInBackground(claim)
  }

  /** A lease is done with. */
  finish(claim: Claim, lease: ClaimLease, now: number): Promise<ReleaseOutcome> {
    claim.dropLease(lease)
    if (claim.state !== 'held') return EXPIRED
    if (claim.users > 0) return RELEASED
    if (this.line.length > 0 && mayPassOn(claim, now)) {
      this.passOn(claim, now)
      return RELEASED
    }
    return this.giveUp(claim, now)
  }

  /** A claim that was held is not any more. */
  lost(claim: Claim, why: string): void {
    this.drop(claim)
    const leases = claim.leases ?? (claim.lease === null ? [] : [claim.lease])
    for (const lease of leases) lease.lose(why)
    this.pump()
  }

  timedOut(task: Task): void {
    const waited = Math.round(this.session.clock.now() - task.since)
    const failure = this.failure ?? (this.unanswered ? NO_ANSWER_YET : null)
    this.leave(task, failure === null ? errors.timedOut(this, waited) : errors.unavailable(this, failure))
  }

  /** The claim cannot succeed: those whom it was for are told. `null`: it was only a try. */
  refuse(claim: Claim, error: Error | null): void {
    const { only } = claim
    abandon(claim)
    if (only !== null) {
      if (error === null) only.give(null)
      else only.fail(error)
    } else if (error !== null) {
      for (let task = this.line.first; task !== null; task = this.line.first) this.leave(task, error)
    }
    this.pump()
  }

  /** No new claims; waiters are told; held claims are released, or left to run out. */
  close(release: boolean): void {
    for (let task = this.line.first; task !== null; task = this.line.first)
      this.leave(task, errors.closed(this))
    for (const claim of this.claims) {
      if (claim.state !== 'held') {
        abandon(claim)
        claim.only?.fail(errors.closed(this))
      } else if (release) {
        this.session.upkeep.lose(claim, 'its Holdfast was closed')
        this.session.cleanup.remove(claim, claim.doubtful, this.ttl)
      } else {
        // Without renewal it ends by itself, and its lease says so in time.
        this.session.expiries.set(claim, claim.validUntil, this.ttl)
      }
    }
  }

  /** Enough claims for those in line, and no more. */
  pump(): void {
    const { line, session } = this
    if (line.length > 0 && !session.closed) {
      const held = this.claims[0]
      if (this.shared && held?.state === 'held') {
        if (held.tokensLeft === 0 && mayPassOn(held, session.clock.now())) this.refill(held)
      } else {
        while (line.length > this.onTheirWay() && this.claims.length < this.kind.most) ask(this.newClaim())
      }
      // Who keeps others waiting wants to hear when strangers wait too, and who waits without a queue when to ask again.
      const { queue, wakeups } = session.store.capabilities
      if (line.length > 0 && (queue || wakeups === 'push')) session.startWatching(() => {})
    }
    this.retire()
  }

  /** Forgets a claim. What the store knows of it is another matter. */
  drop(claim: Claim): void {
    claim.state = 'gone'
    claim.cancel()
    const { claims } = this
    this.claims =
      claims.length === 1 && claims[0] === claim ? NO_CLAIMS : claims.filter((other) => other !== claim)
  }

  /** The store has not said a word to any of the claims. */
  private get unanswered(): boolean {
    return this.claims.every(
      ({ state, inFlight, attempts }) => state === 'asking' && inFlight && attempts === 0,
    )
  }

  private refusal(signal: AbortSignal | undefined): Error | null {
    const open = !this.session.closed
    if (open && signal?.aborted !== true) return null
    this.retire()
    return open && signal !== undefined ? errors.aborted(this, signal) : errors.closed(this)
  }

  /** A reader enters beside the others that this process lets in already. */
  private join(now: number, maxHold: number): ClaimLease | null {
    if (!this.shared || this.line.length > 0) return null
    const claim = this.claims[0]
    if (claim?.state !== 'held' || claim.tokensLeft === 0 || !mayPassOn(claim, now)) return null
    return this.lend(claim, now, now, maxHold)
  }

  /** Nobody is in line: a store that answers at once needs no task and no timer. */
  private claimAtOnce(now: number, maxHold: number): ClaimLease | null {
    if (this.line.length > 0 || this.claims.length >= this.kind.most) return null
    const claim = this.newClaim()
    claim.reserved = true
    ask(claim, now)
    claim.reserved = false
    return claim.state === 'held' ? this.lend(claim, now, now, maxHold) : null
  }

  private newClaim(): Claim {
    const claim = new Claim(this, this.session.nextClaimId())
    // A literal is exactly as long as it must be; an array that grows keeps room for sixteen more.
    this.claims = this.claims.length === 0 ? [claim] : this.claims.concat(claim)
    return claim
  }

  /** Claims that will serve the line when they are granted. */
  private onTheirWay(): number {
    let count = 0
    for (const claim of this.claims) if (claim.state !== 'held' && claim.only === null) count++
    return count
  }

  /** The claim goes to the next in line, or to all readers in line. */
  private serve(claim: Claim, now: number): void {
    while (claim.tokensLeft > 0 && (this.shared || claim.users === 0)) {
      const task = this.line.shift()
      if (task === null) break
      task.give(this.lend(claim, now, task.since, task.maxHold))
    }
    if (claim.users > 0) this.trim()
    else if (this.line.length === 0) this.giveUpInBackground(claim)
    else this.refill(claim)
  }

  private lend(claim: Claim, now: number, since: number, maxHold: number): ClaimLease {
    const token = claim.nextToken++
    claim.tokensLeft--
    claim.sections++
    claim.unyielded++
    const lease = new ClaimLease(claim, token, now, maxHold)
    claim.addLease(lease)
    if (events.acquired.hasSubscribers) {
      events.acquired.publish({ name: this.name, store: this.session.store.kind, token, waited: now - since })
    }
    return lease
  }

  private passOn(claim: Claim, now: number): void {
    if (claim.unyielded >= YIELD_EVERY) {
      claim.unyielded = 0
      return this.session.env.defer(() => this.resume(claim))
    }
    if (claim.tokensLeft === 0) return this.refill(claim)
    this.serve(claim, now)
  }

  /** Every hand-over needs a token of its own: fetch more. */
  private refill(claim: Claim): void {
    if (claim.inFlight) return
    claim.tokens = blockFor(claim, this.line.length)
    this.session.upkeep.renewNow(claim)
  }

  /** Ends the turn. For the tasks still in line here, the release and the next claim are one request. */
  private giveUp(claim: Claim, sentAt: number): Promise<ReleaseOutcome> {
    const { session } = this
    this.lastTurn = claim.sections
    claim.calm = !claim.contended && sentAt < claim.validUntil
    this.drop(claim)
    const next = this.line.length > this.onTheirWay() && session.canQueue ? this.newClaim() : undefined
    if (next !== undefined) {
      next.inFlight = true
      next.whenBusy = 'queue'
      next.tokens = blockFor(next, this.line.length)
    }
    let outcome = null as ReleaseOutcome | null
    let resolve = null as ((outcome: ReleaseOutcome) => void) | null
    session.ask<ReleaseResult>(
      () => session.store.release(claim, next, session.requestTimeout),
      (answer) => {
        const result = 'kind' in answer ? { released: answer, next: answer } : answer
        outcome = this.released(claim, result.released.kind)
        resolve?.(outcome)
        if (next !== undefined) answered(next, sentAt, result.next ?? HALF_AN_ANSWER, session.clock.now())
        this.pump()
      },
    )
    if (outcome === null) return new Promise((settle) => (resolve = settle))
    return outcome === 'released' ? RELEASED : Promise.resolve(outcome)
  }

  private giveUpInBackground(claim: Claim): void {
    // Cannot reject: whatever goes wrong is an outcome, and what is left at the store is cleaned up.
    this.giveUp(claim, this.session.clock.now()).catch(() => {})
  }

  private released(claim: Claim, kind: 'released' | 'not-held' | 'unknown'): ReleaseOutcome {
    // A claim that had to be asked for twice may have a copy of its request still under way.
    if (kind === 'unknown' || claim.doubtful) this.session.cleanup.remove(claim, true, this.ttl)
    return kind === 'not-held' ? 'expired' : kind
  }

  private aborted(task: Task, signal: AbortSignal): void {
    this.leave(task, errors.aborted(this, signal))
  }

  /** A task goes without its lease. Claims that nobody needs any more go too. */
  private leave(task: Task, error: Error): void {
    if (task.only === null) this.line.remove(task)
    else abandon(task.only)
    task.fail(error)
    this.trim()
    this.retire()
  }

  private trim(): void {
    for (let surplus = this.onTheirWay() - this.line.length; surplus > 0; surplus--) {
      const claim = this.claims.findLast(({ state, only }) => state !== 'held' && only === null)
      if (claim !== undefined) abandon(claim)
    }
  }

  private retire(): void {
    if (this.idle) this.session.rest(this)
  }
}

const NO_LINE = new TaskLine()
const NO_CLAIMS: readonly Claim[] = []
const NOTHING: Promise<null> = Promise.resolve(null)
const NO_ANSWER_YET: Unknown = {
  kind: 'unknown',
  cause: new Error('No answer came before the wait was over'),
}
const HALF_AN_ANSWER: Unknown = {
  kind: 'unknown',
  cause: new Error('The store did not answer the second half'),
}
