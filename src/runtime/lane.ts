import { ALL } from '../core/contract.ts'
import type { ClaimAnswer, Held, ReleaseResult, RenewAnswer, StoreEvent, Unknown } from '../core/contract.ts'
import {
  CapacityMismatchError,
  ClosedError,
  LockAbortedError,
  LockTimeoutError,
  StoreUnavailableError,
} from '../core/errors.ts'
import { validUntil } from '../core/validity.ts'
import { onAbort } from './abort-listeners.ts'
import { Claim } from './claim.ts'
import { events } from './events.ts'
import { ClaimLease, EXPIRED, RELEASED } from './lease.ts'
import type { Lease, ReleaseOutcome } from './lease.ts'
import type { Session } from './session.ts'
import { Task, TaskLine } from './task.ts'

export interface LaneSpec {
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
  /** `false`: a lease ends after its ttl, whatever happens. */
  readonly renew: boolean
  /** `strict`: give way as soon as another process is known to wait. `turns`: after the turn's budget. */
  readonly fair: 'turns' | 'strict'
}

export interface WaitOptions {
  readonly wait: number
  readonly maxHold: number
  readonly signal: AbortSignal | undefined
}

export function sameSpec(a: LaneSpec, b: LaneSpec): boolean {
  return (
    a.weight === b.weight &&
    a.capacity === b.capacity &&
    a.ttl === b.ttl &&
    a.renew === b.renew &&
    a.fair === b.fair
  )
}

type Granted = Extract<StoreEvent, { kind: 'granted' }>

/** A turn without rivals lets the event loop look for input after this many sections. */
const YIELD_EVERY = 256
const TOKENS = { fewest: 1, readers: 16, most: 1024, first: 64 }
const RETRY_MS = { first: 25, longest: 1000 }

/**
 * The line of this process's tasks for one name and one kind of claim, and the claims that serve it. To the store a lane
 * is one contender: it claims for the first in line and hands what it got from task to task. Readers and writers of one
 * process are two lanes, and the store decides between them as between strangers.
 */
export class Lane {
  readonly session: Session
  readonly name: string
  readonly spec: LaneSpec
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
  readonly renew: boolean
  /** Readers: one claim serves all of them at once. */
  readonly shared: boolean
  /** How many claims can be held at once. */
  private readonly most: number
  /** Asking, queued and held. */
  readonly claims: Claim[] = []
  /** Another lane of the same name. */
  sibling: Lane | null = null
  private readonly line = new TaskLine()
  /** Why the store gave no answer the last time, if so. */
  private failure: Unknown | null = null

  constructor(session: Session, name: string, spec: LaneSpec) {
    this.session = session
    this.name = name
    this.spec = spec
    this.weight = spec.weight
    this.capacity = spec.capacity
    this.ttl = spec.ttl
    this.renew = spec.renew
    // A lease that is not renewed cannot be handed on, so its readers claim one by one.
    this.shared = spec.capacity === ALL && spec.weight < ALL && spec.renew
    this.most = this.shared ? 1 : Math.floor(spec.capacity / spec.weight)
  }

  acquire({ wait, maxHold, signal }: WaitOptions): Promise<Lease> {
    const refused = this.refusal(signal)
    if (refused !== null) return this.refused(refused)
    const { clock, waits } = this.session
    const now = clock.now()
    const lease = this.join(now, maxHold) ?? this.claimAtOnce(now, maxHold)
    if (lease !== null) return Promise.resolve(lease)
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since: now, maxHold }, resolve as Task['resolve'], reject)
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      if (wait !== Infinity) waits.set(task, now + wait, wait)
      this.line.push(task)
      if (events.waiting.hasSubscribers) events.waiting.publish({ name: this.name, store: this.session.store.kind })
      this.pump()
    })
  }

  /** One attempt; null when somebody else has it, or stands before us. */
  tryAcquire({ maxHold, signal }: Omit<WaitOptions, 'wait'>): Promise<Lease | null> {
    const refused = this.refusal(signal)
    if (refused !== null) return this.refused(refused)
    const now = this.session.clock.now()
    const lease = this.join(now, maxHold)
    if (lease !== null) return Promise.resolve(lease)
    if (this.line.length > 0 || this.claims.length >= this.most) return NOTHING
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since: now, maxHold }, resolve, reject)
      const claim = this.newClaim()
      claim.only = task
      task.only = claim
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      this.ask(claim)
    })
  }

  /** Sends the claim, for the first time or again. */
  ask(claim: Claim): void {
    const { session } = this
    claim.inFlight = true
    claim.tokens = this.blockFor(claim)
    claim.whenBusy = claim.only === null && session.watching && session.store.capabilities.queue ? 'queue' : 'try'
    const sentAt = session.clock.now()
    const timeout = Math.max(100, Math.min(session.requestTimeout, this.ttl / 2))
    session.ask<ClaimAnswer>(
      () => session.store.claim(claim, timeout),
      (answer) => this.answered(claim, sentAt, answer),
    )
  }

  /** The store spoke of its own accord. */
  told(event: Exclude<StoreEvent, { kind: 'gap' }>): void {
    if (event.kind === 'freed') {
      for (const claim of this.claims) if (claim.state === 'asking' && !claim.inFlight) this.askAgain(claim)
      return
    }
    const claim = this.claims.find(({ id }) => id === event.id)
    if (claim === undefined) return
    if (event.kind === 'contended') claim.contended = true
    else if (event.kind === 'revoked') this.session.upkeep.lose(claim, 'it was taken away by force')
    // The message may overtake the answer that says "queued": then it has to wait for it.
    else if (claim.state === 'asking') claim.early = event
    else if (claim.state === 'queued') this.pushed(claim, event)
  }

  /** A heartbeat of a waiter was answered. */
  stillQueued(claim: Claim, sentAt: number, answer: RenewAnswer): void {
    const { upkeep } = this.session
    switch (answer.kind) {
      case 'queued':
        this.failure = null
        claim.attempts = 0
        claim.queuedSentAt = sentAt
        return upkeep.queued(claim, sentAt)
      case 'held':
        return this.granted(claim, sentAt, answer)
      case 'unknown':
        this.failure = answer
        claim.attempts++
        return upkeep.queuedAgain(claim, this.retryDelay(claim))
      case 'renewed':
      case 'lost':
        // Silent for too long, or the store lost its memory: to the end of the line.
        this.drop(claim)
        return this.pump()
    }
  }

  /** A renewal was answered, or the event loop had its chance: go on with the turn. */
  resume(claim: Claim): void {
    if (claim.state !== 'held' || claim.only !== null) return
    if (claim.users > 0 && !this.shared) return
    if (this.line.length > 0 && this.mayPassOn(claim)) return this.passOn(claim)
    if (claim.users === 0) void this.giveUp(claim)
  }

  /** The store did not answer a renewal. A claim that nobody uses just then is not worth holding on to. */
  refillFailed(claim: Claim): void {
    if (claim.users === 0 && claim.only === null) void this.giveUp(claim)
  }

  /** A lease is done with. */
  finish(claim: Claim, lease: ClaimLease): Promise<ReleaseOutcome> {
    claim.dropLease(lease)
    if (claim.state !== 'held') return EXPIRED
    if (claim.users > 0) return RELEASED
    if (this.line.length > 0 && this.mayPassOn(claim)) {
      this.passOn(claim)
      return RELEASED
    }
    return this.giveUp(claim)
  }

  /** A claim that was held is not any more. */
  lost(claim: Claim, why: string): void {
    this.drop(claim)
    const leases = claim.leases ?? (claim.lease === null ? [] : [claim.lease])
    for (const lease of [...leases]) lease.lose(why)
    this.pump()
    this.retire()
  }

  timedOut(task: Task): void {
    const waited = Math.round(this.session.clock.now() - task.since)
    const { kind } = this.session.store
    const details = { lock: this.name, store: kind, waited }
    this.leave(
      task,
      this.failure === null
        ? new LockTimeoutError(
            `"${this.name}" was not free within ${waited} ms. Wait longer, or see who holds it with inspect().`,
            details,
          )
        : this.unavailable(this.failure),
    )
  }

  /** No new claims; waiters are told; held claims are released, or left to run out. */
  close(release: boolean): void {
    for (let task = this.line.first; task !== null; task = this.line.first) this.leave(task, closedError(this.name))
    for (const claim of [...this.claims]) {
      if (claim.state !== 'held') {
        claim.only?.fail(closedError(this.name))
        this.abandon(claim)
      } else if (release) {
        this.session.upkeep.lose(claim, 'its Holdfast was closed')
        this.session.cleanup.remove(claim, claim.doubtful, this.ttl)
      } else {
        // Without renewal it ends by itself, and its lease says so in time.
        this.session.expiries.set(claim, claim.validUntil, this.ttl)
      }
    }
  }

  private refused(error: Error): Promise<never> {
    this.retire()
    return Promise.reject(error)
  }

  private refusal(signal: AbortSignal | undefined): Error | null {
    if (this.session.closed) return closedError(this.name)
    return signal?.aborted === true ? abortedError(this.name, signal) : null
  }

  /** A reader enters beside the others that this process lets in already. */
  private join(now: number, maxHold: number): ClaimLease | null {
    if (!this.shared || this.line.length > 0) return null
    const claim = this.claims[0]
    if (claim?.state !== 'held' || claim.tokensLeft === 0 || !this.mayPassOn(claim)) return null
    return this.lend(claim, now, now, maxHold)
  }

  /** Nobody is in line: a store that answers at once needs no task and no promise. */
  private claimAtOnce(now: number, maxHold: number): ClaimLease | null {
    if (this.line.length > 0 || this.claims.length >= this.most) return null
    const claim = this.newClaim()
    claim.reserved = true
    this.ask(claim)
    claim.reserved = false
    return claim.state === 'held' ? this.lend(claim, now, now, maxHold) : null
  }

  private newClaim(): Claim {
    const claim = new Claim(this, this.session.nextClaimId(), this.session.clock.now())
    this.claims.push(claim)
    return claim
  }

  private answered(claim: Claim, sentAt: number, answer: ClaimAnswer): void {
    claim.inFlight = false
    if (answer.kind === 'unknown') claim.doubtful = true
    else this.failure = null
    if (claim.state === 'gone') return this.sweep(claim, answer)
    switch (answer.kind) {
      case 'held':
        return this.granted(claim, sentAt, answer)
      case 'queued':
        claim.state = 'queued'
        claim.attempts = 0
        claim.queuedSentAt = sentAt
        this.session.upkeep.queued(claim, sentAt)
        if (claim.early !== null) this.pushed(claim, claim.early)
        return
      case 'busy':
        return this.busy(claim, answer.retryAfter)
      case 'mismatch':
        return this.refuse(claim, this.mismatch(answer.capacity))
      case 'unknown':
        this.failure = answer
        if (claim.only !== null || answer.retryable === false) return this.refuse(claim, this.unavailable(answer))
        return this.pause(claim, this.retryDelay(claim))
    }
  }

  /** The answer came for a claim that nobody wants any more. */
  private sweep(claim: Claim, { kind }: ClaimAnswer): void {
    const nothingThere = kind === 'busy' || kind === 'mismatch'
    if (!nothingThere || claim.doubtful) this.session.cleanup.remove(claim, claim.doubtful, this.ttl)
    this.retire()
  }

  private granted(claim: Claim, sentAt: number, answer: Held): void {
    const { clock, store, upkeep } = this.session
    const end = validUntil(sentAt, this.ttl, store.capabilities.earlyExpiry)
    if (clock.now() >= end) {
      // It took longer than the lease lasts. Nobody may have it; a new claim may be quicker.
      this.failure = { kind: 'unknown', cause: new Error('The grant arrived after its lease had ended') }
      const { only } = claim
      this.drop(claim)
      this.session.cleanup.remove(claim, claim.doubtful, this.ttl)
      only?.fail(this.unavailable(this.failure))
      return this.pump()
    }
    this.hold(claim, end, answer)
    upkeep.held(claim, sentAt)
    this.serveFirst(claim)
  }

  /** Granted without being asked just now: it counts from when the store last said "queued", and not for the full ttl. */
  private pushed(claim: Claim, event: Granted): void {
    const { clock, store, upkeep, patience } = this.session
    const now = clock.now()
    const end = validUntil(claim.queuedSentAt, Math.min(this.ttl, patience), store.capabilities.earlyExpiry)
    if (now >= end) return upkeep.renewNow(claim)
    this.hold(claim, end, event)
    upkeep.pickedUp(claim, now)
    this.serveFirst(claim)
  }

  private hold(claim: Claim, end: number, { token, count, contended }: Held | Granted): void {
    claim.state = 'held'
    claim.attempts = 0
    claim.tokens = 0
    claim.validUntil = end
    claim.contended = contended
    claim.takeTokens(token, count)
    claim.turnBegan = this.session.clock.now()
  }

  private serveFirst(claim: Claim): void {
    const { only } = claim
    if (claim.reserved) return
    if (only === null) return this.serve(claim)
    claim.only = null
    only.give(this.lend(claim, this.session.clock.now(), only.since, only.maxHold))
    if (this.shared && this.line.length > 0) this.resume(claim)
  }

  private busy(claim: Claim, retryAfter = Infinity): void {
    const { session } = this
    if (claim.only !== null) return this.refuse(claim, null)
    const pause = (): void =>
      this.pause(claim, Math.min(session.pollDelay(claim, session.clock.now()), retryAfter + 1))
    if (!session.store.capabilities.queue) return pause()
    session.startWatching((watching) => {
      if (claim.state !== 'asking' || claim.inFlight) return
      if (watching) this.ask(claim)
      else pause()
    })
  }

  private pause(claim: Claim, delay: number): void {
    claim.attempts++
    this.session.expiries.set(claim, this.session.clock.now() + delay, Math.ceil(delay))
  }

  private askAgain(claim: Claim): void {
    claim.cancel()
    this.ask(claim)
  }

  private retryDelay({ attempts }: Claim): number {
    const delay = Math.min(RETRY_MS.first * 2 ** attempts, RETRY_MS.longest)
    return delay * (0.5 + this.session.env.random() / 2)
  }

  /** The claim cannot succeed: tell those whom it was for. */
  private refuse(claim: Claim, error: Error | null): void {
    const { only } = claim
    this.abandon(claim)
    if (only !== null) {
      if (error === null) only.give(null)
      else only.fail(error)
    } else if (error !== null) {
      for (let task = this.line.first; task !== null; task = this.line.first) this.leave(task, error)
    }
    this.pump()
    this.retire()
  }

  /** Enough claims for those in line, and no more. */
  private pump(): void {
    const { line, session } = this
    if (session.closed || line.length === 0) return
    const held = this.claims[0]
    if (this.shared && held?.state === 'held') {
      if (held.tokensLeft === 0 && this.mayPassOn(held)) this.refill(held)
      return
    }
    while (line.length > this.unserved() && this.claims.length < this.most) this.ask(this.newClaim())
    // Who keeps others waiting wants to hear when strangers wait too.
    if (line.length > 0 && session.store.capabilities.queue) session.startWatching(() => {})
  }

  /** Claims on their way for the line. */
  private unserved(): number {
    let count = 0
    for (const claim of this.claims) if (claim.state !== 'held' && claim.only === null) count++
    return count
  }

  /** The claim goes to the next in line, or to all readers in line. */
  private serve(claim: Claim): void {
    const now = this.session.clock.now()
    while (claim.tokensLeft > 0 && (this.shared || claim.users === 0)) {
      const task = this.line.shift()
      if (task === null) break
      task.give(this.lend(claim, now, task.since, task.maxHold))
    }
    if (claim.users > 0) return this.trim()
    if (this.line.length === 0) void this.giveUp(claim)
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

  /** Whether the next task here may have it, or the store's queue goes first. */
  private mayPassOn(claim: Claim): boolean {
    const { turn, clock, closed } = this.session
    const now = clock.now()
    if (!this.renew || closed || claim.validUntil - now < Math.min(this.ttl, this.session.patience) / 3) return false
    if (!claim.contended) return true
    if (this.spec.fair === 'strict') return false
    return claim.sections < turn.count && now - claim.turnBegan < turn.ms
  }

  private passOn(claim: Claim): void {
    if (claim.unyielded >= YIELD_EVERY) {
      claim.unyielded = 0
      return this.session.env.defer(() => this.resume(claim))
    }
    if (claim.tokensLeft === 0) return this.refill(claim)
    this.serve(claim)
  }

  /** Every hand-over needs a token of its own: fetch more. */
  private refill(claim: Claim): void {
    if (claim.inFlight) return
    claim.tokens = this.blockFor(claim)
    this.session.upkeep.renewNow(claim)
  }

  /** As many tokens as the turn is likely to use: the counter should not run ahead of the clock for nothing. */
  private blockFor(claim: Claim): number {
    if (!this.renew || claim.only !== null) return TOKENS.fewest
    const least = this.shared ? TOKENS.readers : TOKENS.fewest
    const wanted = claim.sections === 0 ? Math.min(this.line.length, TOKENS.first) : claim.sections
    return Math.min(Math.max(wanted, least), TOKENS.most)
  }

  /** Ends the turn. For the tasks still in line here, the release and the next claim are one request. */
  private giveUp(claim: Claim): Promise<ReleaseOutcome> {
    const { session } = this
    this.drop(claim)
    let next: Claim | undefined
    if (this.line.length > this.unserved() && session.watching && session.store.capabilities.queue && !session.closed) {
      next = this.newClaim()
      next.inFlight = true
      next.whenBusy = 'queue'
      next.tokens = this.blockFor(next)
    }
    const sentAt = session.clock.now()
    let outcome = null as ReleaseOutcome | null
    let resolve = null as ((outcome: ReleaseOutcome) => void) | null
    session.ask<ReleaseResult>(
      () => session.store.release(claim, next, session.requestTimeout),
      (answer) => {
        const { released, next: position } = 'kind' in answer ? { released: answer, next: answer } : answer
        outcome = this.released(claim, released.kind)
        resolve?.(outcome)
        if (next !== undefined) this.answered(next, sentAt, position ?? UNANSWERED)
        else this.pump()
        this.retire()
      },
    )
    if (outcome === null) return new Promise((settle) => (resolve = settle))
    return outcome === 'released' ? RELEASED : Promise.resolve(outcome)
  }

  private released(claim: Claim, kind: 'released' | 'not-held' | 'unknown'): ReleaseOutcome {
    // A claim that had to be asked for twice may have a copy of its request still under way.
    if (kind === 'unknown' || claim.doubtful) this.session.cleanup.remove(claim, true, this.ttl)
    return kind === 'not-held' ? 'expired' : kind
  }

  private aborted(task: Task, signal: AbortSignal): void {
    this.leave(task, abortedError(this.name, signal))
  }

  /** A task goes without its lease. Claims that nobody needs any more go too. */
  private leave(task: Task, error: Error): void {
    if (task.only === null) this.line.remove(task)
    else this.abandon(task.only)
    task.fail(error)
    this.trim()
    this.retire()
  }

  private trim(): void {
    for (let surplus = this.unserved() - this.line.length; surplus > 0; surplus--) {
      const claim = this.claims.findLast(({ state, only }) => state !== 'held' && only === null)
      if (claim !== undefined) this.abandon(claim)
    }
  }

  /** Nobody wants the claim any more: whatever the store knows of it has to go. */
  private abandon(claim: Claim): void {
    const { state, inFlight, doubtful } = claim
    this.drop(claim)
    // With a first request under way, its answer tells what there is to remove.
    if (state === 'asking' && (inFlight || !doubtful)) return
    this.session.cleanup.remove(claim, doubtful, Math.max(this.ttl, this.session.patience))
  }

  private drop(claim: Claim): void {
    claim.state = 'gone'
    claim.cancel()
    const index = this.claims.indexOf(claim)
    if (index >= 0) this.claims.splice(index, 1)
  }

  private retire(): void {
    if (this.line.length === 0 && this.claims.length === 0) this.session.forget(this)
  }

  private mismatch(actual: number): CapacityMismatchError {
    const details = { lock: this.name, store: this.session.store.kind, expected: this.capacity, actual }
    return new CapacityMismatchError(
      `"${this.name}" is in use with a capacity of ${actual}, not ${this.capacity}. Use one kind of lock and one capacity per name.`,
      details,
    )
  }

  private unavailable({ cause }: Unknown): StoreUnavailableError {
    const { kind } = this.session.store
    return new StoreUnavailableError(
      `The ${kind} store did not answer, so "${this.name}" was not acquired. Check that it runs and can be reached.`,
      { lock: this.name, store: kind, cause },
    )
  }
}

const NOTHING: Promise<null> = Promise.resolve(null)
const UNANSWERED: ClaimAnswer = { kind: 'unknown', cause: new Error('The store did not answer the second half') }

function closedError(name: string): ClosedError {
  return new ClosedError(`"${name}" cannot be acquired: the Holdfast was closed.`, { lock: name })
}

function abortedError(name: string, signal: AbortSignal): LockAbortedError {
  return new LockAbortedError(`The wait for "${name}" was aborted.`, { lock: name, cause: signal.reason as unknown })
}
