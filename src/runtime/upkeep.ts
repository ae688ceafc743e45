import type { RenewAnswer, RenewRequest, Unknown } from '../core/contract.ts'
import { RENEW } from '../core/answers.ts'
import { bare } from '../core/error-printing.ts'
import { renewalDue, validUntil } from '../core/validity.ts'
import { ask, stillQueued } from './asking.ts'
import type { Claim } from './claim.ts'
import { Deadlines } from './deadlines.ts'
import { events } from './events.ts'
import { renewalFailed, resume } from './holding.ts'
import { mayHurry } from './hurry.ts'
import type { Session } from './session.ts'

/** Renewals that fall due within this part of their span go along with the first. */
const TOGETHER = 0.1
/** Claims per request. Few enough to stay in the processor's cache from the first look to the last. */
const BATCH = 500
/**
 * Batches before the event loop has its turn again: a hundred thousand claims in one go would keep everybody else waiting
 * for a tenth of a second, and a pause after each batch would cost more than the renewals do.
 */
const BATCHES_AT_ONCE = 4
const MIN_TIMEOUT_MS = 50

/**
 * The watchdog: keeps the session's claims alive, holders and waiters alike, with one timer and one batch per tick, and
 * ends those whose time is up. A claim is here while it is queued or held.
 */
export class Upkeep {
  private readonly session: Session
  private readonly renewals: Deadlines
  private batch: Claim[] = []

  constructor(session: Session) {
    this.session = session
    this.renewals = new Deadlines(session.clock, session.env, {
      background: true,
      slack: TOGETHER,
      atOnce: BATCHES_AT_ONCE * BATCH,
      afterwards: () => this.flush(),
      onFirst: () => session.attend(),
    })
  }

  /** A claim was granted: `sentAt` is when the request left whose answer says so. */
  held(claim: Claim, sentAt: number): void {
    const { ttl, renew } = claim.lane
    if (renew && !this.session.lettingGo) this.renewals.set(claim, renewalDue(sentAt, ttl), ttl)
    else this.session.expiries.set(claim, claim.validUntil, ttl)
  }

  /**
   * A claim stands in line: it shows that it is alive, and asks whether a message got lost, from time to time. Also when a lease
   * before it could end: of a holder that crashed nobody hears.
   */
  queued(claim: Claim, sentAt: number, retryAfter: number = Infinity): void {
    const every = this.session.heartbeat(claim)
    const now = this.session.clock.now()
    const end = now + Math.ceil(retryAfter) + 1
    if (end < sentAt + every && mayHurry(claim, now)) this.renewals.set(claim, end, 0)
    else this.renewals.set(claim, sentAt + every, 3 * every)
  }

  /** The store did not answer a waiter: it asks again soon. */
  queuedAgain(claim: Claim, delay: number): void {
    this.renewals.set(claim, this.session.clock.now() + delay, Math.ceil(delay))
  }

  /** Asks about a claim at once. */
  renewNow(claim: Claim): void {
    this.renewAllNow([claim])
  }

  renewAllNow(claims: Iterable<Claim>): void {
    // What is left to run out is not asked about: to ask is to renew.
    if (this.session.lettingGo) return
    for (const claim of claims) {
      if (claim.inFlight) continue
      claim.cancel()
      if (this.batch.push(claim) >= BATCH) this.flush()
    }
    this.flush()
  }

  /** A claim's deadline came, in `renewals` or in `expiries`. */
  due(claim: Claim, now: number): void {
    if (claim.state === 'asking') ask(claim)
    else if (claim.state === 'held' && now >= claim.validUntil) this.expire(claim)
    else if (claim.inFlight) this.expireUnanswered(claim)
    else if (claim.state !== 'gone' && this.batch.push(claim) >= BATCH) this.flush()
  }

  /** The claim is not ours any more, and the store knows. A copy of its request that is still under way would hold the lock for nobody. */
  lose(claim: Claim, why: string): void {
    if (claim.doubtful) this.abandon(claim, why)
    else if (claim.state === 'held') claim.lane.lost(claim, why)
  }

  /** By our own clocks the lease has ended. The store may still have it, for nobody. */
  expire(claim: Claim): void {
    this.abandon(claim, 'it was not renewed in time')
  }

  /** The claim is not ours any more, whatever the store has of it. */
  abandon(claim: Claim, why: string): void {
    if (claim.state !== 'held') return
    claim.lane.lost(claim, why)
    this.session.cleanup.remove(claim, claim.doubtful, claim.ttl)
  }

  /** A waiter that asked for tokens was told that it holds, and got none. */
  noTokens(): Unknown {
    return this.session.requests.broken(RENEW, 'told a waiter that it holds, and gave it no tokens')
  }

  stop(): void {
    this.renewals.stop()
  }

  get idle(): boolean {
    return this.renewals.size === 0
  }

  private flush(): void {
    if (this.batch.length === 0) return
    const batch = this.batch
    this.batch = []
    for (const claim of batch) claim.questioned()
    for (const alike of this.byPace(batch)) this.send(alike)
  }

  /** One request for those that may wait about as long for an answer: who has little time must not cut that of the others short. */
  private byPace(batch: Claim[]): Iterable<Claim[]> {
    const paces = new Map<number, Claim[]>()
    for (const claim of batch) {
      const pace = Math.clz32(this.timeoutOf(claim))
      const alike = paces.get(pace)
      if (alike === undefined) paces.set(pace, [claim])
      else alike.push(claim)
    }
    return paces.values()
  }

  /**
   * For a holder another try has to fit in; who waits, for a grant or for tokens, should not wait long for an answer that got lost. But for
   * longer each time: a store that is slow has made the grant with its answer, and would keep it for somebody who never hears of it.
   */
  private timeoutOf(claim: Claim, unheard: number = claim.unheard): number {
    const { state, ttl, patience, users } = claim
    const share = ttl / (state === 'held' ? 6 : 2)
    const lasts = users > 0 ? share : Math.min(share, (patience / 6) * 2 ** unheard)
    return Math.max(Math.min(lasts, this.session.requestTimeout), MIN_TIMEOUT_MS)
  }

  /** Of the first question about it. */
  leastTimeoutOf(claim: Claim): number {
    return this.timeoutOf(claim, 0)
  }

  private send(batch: readonly Claim[]): void {
    const { clock, store, era } = this.session
    const sentAt = clock.now()
    let timeout = Infinity
    for (const claim of batch) timeout = Math.min(timeout, this.timeoutOf(claim))
    this.session.ask<readonly RenewAnswer[]>(
      RENEW,
      () => store.renew(batch.map(renewalOf), timeout),
      (answers) => this.settleAll(batch, { sentAt, era }, answers),
    )
    for (const claim of batch) if (claim.inFlight) this.expireUnanswered(claim)
  }

  /** While nobody answers, the local clock decides. */
  private expireUnanswered(claim: Claim): void {
    if (claim.state === 'held') this.session.expiries.set(claim, claim.validUntil, claim.ttl)
  }

  private settleAll(
    batch: readonly Claim[],
    { sentAt, era }: { readonly sentAt: number; readonly era: number },
    answers: readonly RenewAnswer[] | Unknown,
  ): void {
    const { clock, requests } = this.session
    const now = clock.now()
    // One that was left out moves all others to their neighbours: nobody can say whose is whose.
    const whole = 'kind' in answers || answers.length === batch.length
    const told = whole
      ? answers
      : requests.broken(RENEW, `answered ${answers.length} of ${batch.length} requests`)
    batch.forEach((claim, index) => {
      claim.landed()
      const answer = 'kind' in told ? told : (told[index] ?? NO_ANSWER)
      if (answer.kind !== 'unknown') claim.heardIn(era)
      if (claim.state === 'held') this.settleHeld(claim, sentAt, now, answer)
      else if (claim.state === 'queued') stillQueued(claim, sentAt, answer)
    })
  }

  private settleHeld(claim: Claim, sentAt: number, now: number, answer: RenewAnswer): void {
    const { lane } = claim
    if (now >= claim.validUntil) return this.expire(claim)
    switch (answer.kind) {
      case 'held':
      case 'renewed': {
        const { earlyExpiry } = this.session.store.capabilities
        claim.extend(now, validUntil(sentAt, lane.ttl, earlyExpiry), answer.contended)
        lane.heardOf(claim, null)
        if (claim.tokens > 0) {
          if (answer.kind === 'held') claim.takeTokens(answer.token, answer.count)
          else claim.endTurn()
        }
        claim.want(0)
        this.held(claim, sentAt)
        if (events.renewed.hasSubscribers) {
          events.renewed.publish({ name: lane.name, store: this.session.store.kind, took: now - sentAt })
        }
        return resume(claim)
      }
      case 'unknown':
        return this.retry(claim, now, answer)
      case 'queued':
        // The store is not the one that granted it, or has lost its last moments: it has the claim in line again, for nobody.
        claim.doubt()
        return this.abandon(claim, 'the store has it in the queue again')
      case 'lost':
        return this.lose(claim, 'the store does not know it any more')
    }
  }

  /** The outcome is unknown: believe no longer than before, and ask again with what time is left. */
  private retry(claim: Claim, now: number, answer: Unknown): void {
    const { session } = this
    const remaining = claim.validUntil - now
    if (events['at-risk'].hasSubscribers) {
      events['at-risk'].publish({
        name: claim.name,
        store: session.store.kind,
        remaining,
        cause: bare(answer.cause),
      })
    }
    // Whoever heard of it may have given it up.
    if (claim.state !== 'held') return
    const pause = Math.min(claim.ttl / 15, 1000) * (0.5 + session.env.random())
    if (pause < remaining && !session.lettingGo) this.renewals.set(claim, now + pause, Math.ceil(pause))
    else session.expiries.set(claim, claim.validUntil, claim.ttl)
    claim.want(0)
    claim.lane.heardOf(claim, answer)
    renewalFailed(claim)
  }
}

const renewalOf = (claim: Claim): RenewRequest => claim.renewal()

const NO_ANSWER: RenewAnswer = { kind: 'unknown', cause: new Error('The store gave too few answers') }
