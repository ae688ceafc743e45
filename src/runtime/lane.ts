import type { ClaimAnswer, StoreEvent, Unknown } from '../core/contract.ts'
import { onAbort } from './abort-listeners.ts'
import { abandon, answered, ask, askAgain, askInTurn, freed, told } from './asking.ts'
import { Claim } from './claim.ts'
import type { ClaimState } from './claim.ts'
import {
  asTheyAre,
  claimOf,
  comingIn,
  lastComing,
  NO_CLAIMS,
  noLongerComing,
  sizeOf,
  withClaim,
  without,
} from './claims.ts'
import type { Claims } from './claims.ts'
import { events } from './events.ts'
import * as holding from './holding.ts'
import { mayHurry } from './hurry.ts'
import * as errors from './lane-errors.ts'
import type { LaneKind } from './lane-kind.ts'
import type { ClaimLease, Lease, ReleaseOutcome } from './lease.ts'
import { Line } from './line.ts'
import type { Session } from './session.ts'
import { Task } from './task.ts'
import { isUpToDate, mayPassOn } from './turn.ts'

export interface WaitOptions {
  readonly wait: number
  readonly maxHold: number
  readonly signal: AbortSignal | undefined
}

/**
 * The line of this process's tasks for one name and one kind of claim, and the claims that serve it. To the store a lane
 * is one contender: it claims for the first in line (asking.ts) and hands what it got from task to task (holding.ts).
 * Readers and writers of one process are two lanes, and the store decides between them as between strangers.
 */
export class Lane {
  readonly session: Session
  readonly name: string
  readonly kind: LaneKind
  /** Asking, queued and held. */
  claims: Claims = NO_CLAIMS
  /** Another lane of the same name. */
  sibling: Lane | null = null
  /** The session knows it. */
  listed = false
  /** Why the store gave no answer the last time, if so. */
  failure: Unknown | null = null
  /** Others wait whom nobody tells that the lock is free: until then they have the same chance as we. */
  politeUntil = 0
  /** See hurry.ts: by those who come while the store is silent. */
  hurriedUntil = 0
  /** How many sections the last turn had: the next one will want about as many tokens. */
  lastTurn = 0
  /** Made when the first task comes: most locks are never waited for. */
  line: Line<Task> = NO_LINE

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
    return this.line.length === 0 && sizeOf(this.claims) === 0
  }

  /** How many tasks are in line. */
  get waiting(): number {
    return this.line.length
  }

  claimsIn(wanted: ClaimState): readonly Claim[] {
    return asTheyAre(this.claims).filter(({ state }) => state === wanted)
  }

  acquire(options: WaitOptions): Promise<Lease> {
    const { maxHold, signal } = options
    const refusal = this.refusal(signal)
    if (refusal !== null) return this.refused(refusal)
    const now = this.session.clock.now()
    const lease = this.join(now, maxHold) ?? this.claimAtOnce(now, maxHold)
    return lease === null ? this.standInLine(now, options) : this.session.loop.given<Lease>(lease)
  }

  /** A function of its own: what its closures need would be put aside for every acquire, also for those that need not wait. */
  private standInLine(now: number, { wait, maxHold, signal }: WaitOptions): Promise<Lease> {
    const { clock, waits, store } = this.session
    const since = clock.mono
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since, maxHold }, resolve as Task['resolve'], reject)
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      waits.set(task, since + wait, wait)
      if (this.line === NO_LINE) this.line = new Line()
      this.line.push(task)
      if (events.waiting.hasSubscribers) events.waiting.publish({ name: this.name, store: store.kind })
      if (this.failure !== null) this.askForNewcomer(now)
      this.pump(now)
    })
  }

  /**
   * Others here wait for a store that was silent when it was last asked. Who comes now has no part in that, and may have less time. So
   * they ask again, but only some of a thousand: or a store in trouble would be asked by all of them for each who comes.
   */
  private askForNewcomer(now: number): void {
    for (const claim of asTheyAre(this.claims)) {
      if (claim.inFlight || claim.state === 'held') continue
      if (!mayHurry(this, now)) return
      askAgain(claim)
    }
  }

  /** One attempt; null when somebody else has it, or stands before us. */
  tryAcquire({ maxHold, signal }: Omit<WaitOptions, 'wait'>): Promise<Lease | null> {
    const refusal = this.refusal(signal)
    if (refusal !== null) return this.refused(refusal)
    const { clock } = this.session
    const now = clock.now()
    const since = clock.mono
    const lease = this.join(now, maxHold)
    if (lease !== null) return this.session.loop.given(lease)
    if (sizeOf(this.claims) >= this.kind.most || this.knownToWait) return this.refused(null)
    return new Promise((resolve, reject) => {
      const task = new Task(this, { since, maxHold }, resolve, reject)
      const claim = this.newClaim(task)
      task.only = claim
      if (signal !== undefined) task.forgetSignal = onAbort(signal, () => this.aborted(task, signal))
      ask(claim, now)
    })
  }

  /** The store spoke of its own accord. */
  told(event: Exclude<StoreEvent, { kind: 'gap' }>): void {
    if (event.kind === 'freed') {
      for (const claim of asTheyAre(this.claims)) freed(claim)
      return
    }
    const claim = claimOf(this.claims, event.id)
    if (claim === undefined) return
    if (event.kind === 'granted') told(claim)
    else if (event.kind === 'contended') claim.othersWait()
    else if (claim.state === 'held') this.session.upkeep.lose(claim, 'it was taken away by force')
    else claim.revoke()
  }

  /** A lease is done with. Leases come from holding.ts, and so cannot ask it themselves. */
  finish(claim: Claim, lease: ClaimLease, now: number): Promise<ReleaseOutcome> {
    return holding.finish(claim, lease, now)
  }

  /** What a release was to ask for in the same request was answered. */
  heardNext(claim: Claim, sentAt: number, answer: ClaimAnswer): void {
    answered(claim, sentAt, answer, this.session.clock.now())
  }

  /** A claim that was held is not any more. */
  lost(claim: Claim, why: string): void {
    this.drop(claim)
    const all = claim.leases === null ? [claim.lease] : [...claim.leases]
    // Whoever is told of its end may be who takes its claim away.
    const leases = all.filter((lease) => lease !== null && !lease.over) as ClaimLease[]
    // All of them know before the first subscriber or listener runs.
    for (const lease of leases) lease.lose(why)
    for (const lease of leases) lease.announce(why)
    for (const lease of leases) lease.tell()
    this.pump()
  }

  timedOut(task: Task): void {
    const waited = Math.round(this.session.env.mono() - task.since)
    const failure = this.failure ?? (this.unanswered ? NO_ANSWER_YET : null)
    this.leave(task, failure === null ? errors.timedOut(this, waited) : errors.unavailable(this, failure))
  }

  /** The claim cannot succeed: those whom it was for are told. `null`: it was only a try. */
  refuse(claim: Claim, error: Error | null): void {
    const { only } = claim
    abandon(claim)
    if (only !== null) only.refuse(error)
    else if (error !== null) this.failAll(error)
    this.pump()
  }

  /** Whoever waits is told, and nobody asks any more. What is held is another matter. */
  close(): void {
    this.failAll(errors.closed(this))
    for (const claim of asTheyAre(this.claims)) {
      if (claim.state === 'held') continue
      abandon(claim)
      claim.only?.fail(errors.closed(this))
    }
  }

  /** Enough claims for those in line, and no more. */
  pump(at?: number): void {
    const { line, session } = this
    if (line.length > 0 && !session.closed) {
      const now = at ?? session.clock.now()
      const open = this.openClaim(now)
      if (open === null) while (this.needsClaim(now)) askInTurn(this.newClaim(), now)
      else if (isUpToDate(open, now)) holding.passOn(open, now)
      else holding.refill(open)
      // Who keeps others waiting wants to hear when strangers wait too. Who has only just asked may not have to wait at all.
      if (session.mayListen && (line.length > this.justAsked() || session.store.listeningIsFree === true))
        session.listen()
    }
    this.retire()
  }

  /** Forgets a claim. What the store knows of it is another matter. */
  drop(claim: Claim): void {
    noLongerComing(this.claims, claim)
    claim.end()
    this.claims = without(this.claims, claim)
    this.session.closing?.dropped(claim)
  }

  /** The store was asked, and has not said a word to any of the claims that those in line wait for. */
  private get unanswered(): boolean {
    let asked = false
    for (const claim of this.claims) {
      const { state, inFlight, attempts } = claim
      if (state === 'held' && !this.isAskedFor(claim)) continue
      if (!inFlight || (state !== 'held' && (state !== 'asking' || attempts > 0))) return false
      asked = true
    }
    return asked
  }

  /** A claim that is held is theirs as soon as the store has said that nobody else waits, or given more tokens. */
  private isAskedFor({ users, contended }: Claim): boolean {
    return this.shared ? !contended : users === 0
  }

  /** What came of a question about a claim that is held. */
  heardOf(claim: Claim, failure: Unknown | null): void {
    if (this.line.length > 0 && this.isAskedFor(claim)) this.failure = failure
  }

  /**
   * Somebody here stands before a newcomer. Who only waits for the store's first answer does not: the lock may be free, and the store knows.
   * Readers never do, but for a writer between them, of whom the store knows too.
   */
  private get knownToWait(): boolean {
    if (this.kind.reads || this.line.length === 0) return false
    if (this.line.length > this.onTheirWay()) return true
    const last = lastComing(this.claims)
    return last === undefined || last.state !== 'asking' || !last.inFlight || last.attempts > 0
  }

  private refusal(signal: AbortSignal | undefined): Error | null {
    const open = !this.session.closed
    if (open && signal?.aborted !== true) return null
    this.retire()
    return open && signal !== undefined ? errors.aborted(this, signal) : errors.closed(this)
  }

  /** A caller goes without a lease, and nobody was asked. */
  private refused(refusal: Error): Promise<never>
  private refused(refusal: null): Promise<null>
  private refused(refusal: Error | null): Promise<null> {
    return new Promise((resolve, reject) => {
      this.session.loop.refuse(() => (refusal === null ? resolve(null) : reject(refusal)))
    })
  }

  /** Readers: the claim that one more of them may share; rather one that needs no request for that. */
  private openClaim(now: number): Claim | null {
    if (!this.shared) return null
    let open: Claim | null = null
    for (const claim of this.claims) {
      if (claim.state !== 'held' || !mayPassOn(claim, now)) continue
      if (claim.tokensLeft > 0 && isUpToDate(claim, now)) return claim
      open ??= claim
    }
    return open
  }

  /** How many readers share this lane's claims now. */
  get sharers(): number {
    let sum = 0
    if (this.shared) for (const { users } of this.claims) sum += users
    return sum
  }

  /** A reader enters beside the others that this process lets in already. */
  private join(now: number, maxHold: number): ClaimLease | null {
    if (!this.shared || this.line.length > 0 || sizeOf(this.claims) === 0) return null
    this.session.listen()
    const claim = this.openClaim(now)
    if (claim === null || claim.tokensLeft === 0 || !isUpToDate(claim, now)) return null
    return holding.lend(claim, now, maxHold)
  }

  /** Nobody is in line: a store that answers at once needs no task and no timer. */
  private claimAtOnce(now: number, maxHold: number): ClaimLease | null {
    if (this.line.length > 0 || sizeOf(this.claims) >= this.kind.most || now < this.politeUntil) return null
    if (this.shared && (this.onTheirWay() > 0 || this.openClaim(now) !== null)) return null
    const claim = this.newClaim()
    claim.reserve()
    ask(claim, now)
    claim.open()
    // Told that it was taken away meanwhile, it is asked about; then it is for who is first in line.
    return claim.state === 'held' && !claim.revoked ? holding.lend(claim, now, maxHold) : null
  }

  /** `only`: the task that it is for, and that will not wait. */
  newClaim(only: Task | null = null): Claim {
    // A store that answers at once may end the last claim, and with it the lane, in the middle of the call that needs the next one.
    if (!this.listed) this.session.enlist(this)
    const claim = new Claim(this, this.session.nextClaimId(), only)
    this.claims = withClaim(this.claims, claim)
    return claim
  }

  /** Claims that will serve the line when they are granted. */
  onTheirWay(): number {
    return comingIn(this.claims)
  }

  /** How many of those in line have a claim that the store has not answered yet. */
  private justAsked(): number {
    let count = 0
    for (const { state, only, attempts } of this.claims) {
      if (state === 'asking' && only === null && attempts === 0) count++
    }
    return this.shared && count > 0 ? Infinity : count
  }

  /** Those in line need one more claim than there are. One serves all readers. */
  needsClaim(now: number): boolean {
    if (this.shared) return this.line.length > 0 && this.onTheirWay() === 0 && this.openClaim(now) === null
    return this.line.length > this.onTheirWay() && sizeOf(this.claims) < this.kind.most
  }

  private aborted(task: Task, signal: AbortSignal): void {
    this.leave(task, errors.aborted(this, signal))
  }

  /** A task goes without its lease. Claims that nobody needs any more go too, and those behind it get their turn. */
  private leave(task: Task, error: Error): void {
    if (task.only === null) this.line.remove(task)
    else abandon(task.only)
    task.fail(error)
    this.trim()
    this.pump()
  }

  private failAll(error: Error): void {
    for (let task = this.line.shift(); task !== null; task = this.line.shift()) task.refuse(error)
    this.trim()
  }

  trim(): void {
    // A silence is nothing to those who come when nobody waits any more.
    if (this.line.length === 0) this.failure = null
    const wanted = this.shared ? Math.min(this.line.length, 1) : this.line.length
    for (let surplus = this.onTheirWay() - wanted; surplus > 0; surplus--) {
      const claim = lastComing(this.claims)
      if (claim !== undefined) abandon(claim)
    }
  }

  private retire(): void {
    if (this.idle) this.session.rest(this)
  }
}

const NO_LINE: Line<Task> = new Line()
const NO_ANSWER_YET: Unknown = {
  kind: 'unknown',
  cause: new Error('No answer came before the wait was over'),
}
