import { CLAIM } from '../core/answers.ts'
import { backOff } from '../core/back-off.ts'
import type { Busy, ClaimAnswer, Held, Queued, RenewAnswer, Unknown } from '../core/contract.ts'
import { validUntil } from '../core/validity.ts'
import type { Claim } from './claim.ts'
import { noLongerComing } from './claims.ts'
import { goOnHurrying, mayHurry } from './hurry.ts'
import { serveFirst } from './holding.ts'
import * as errors from './lane-errors.ts'
import { blockFor } from './turn.ts'

/**
 * From "I want it" to "I have it": how a claim is asked for, what each answer means, and what becomes of a claim that
 * nobody wants any more. What a lane does with a claim that it has is in holding.ts.
 */

const RETRY_MS = { first: 25, longest: 1000 }
/** An answer that comes when half the ttl is over is of little use. */
const MIN_TIMEOUT_MS = 100

/** Sends the claim, for the first time or again. */
export function ask(claim: Claim, sentAt: number = claim.lane.session.clock.now()): void {
  const { lane } = claim
  const { session } = lane
  const whenBusy = claim.only === null && session.canQueue ? 'queue' : 'try'
  claim.asked(blockFor(claim, lane.waiting), whenBusy, session.era)
  const timeout = Math.max(MIN_TIMEOUT_MS, Math.min(session.requestTimeout, lane.ttl / 2))
  session.ask<ClaimAnswer>(
    CLAIM,
    () => session.store.claim(claim.request(), timeout),
    (answer, atOnce) => answered(claim, sentAt, answer, atOnce ? sentAt : session.clock.now()),
  )
}

/** A new claim: asked for now, or, after this process had its turn while others wait, after a pause like theirs. */
export function askInTurn(claim: Claim, now: number): void {
  const { lane } = claim
  if (now >= lane.politeUntil) return ask(claim, now)
  lane.session.expiries.set(claim, lane.politeUntil, Math.ceil(lane.politeUntil - now))
}

/** A claim request that left at `sentAt` was answered, or not. */
export function answered(claim: Claim, sentAt: number, answer: ClaimAnswer, now: number): void {
  const { lane } = claim
  claim.landed()
  if (answer.kind === 'unknown') claim.doubt()
  if (claim.state === 'gone') return sweep(claim, answer)
  // Who waits has no part in what became of a try.
  if (claim.only === null) lane.failure = answer.kind === 'unknown' ? answer : null
  switch (answer.kind) {
    case 'held':
      return granted(claim, sentAt, now, answer)
    case 'queued':
      if (claim.whenBusy === 'try' && queuedTry(claim)) return
      claim.queue()
      return wait(claim, sentAt, answer)
    case 'busy':
      return busy(claim, answer)
    case 'mismatch':
      return lane.refuse(claim, errors.mismatch(lane, answer.capacity))
    case 'unknown':
      if (claim.only === null && answer.retryable !== false) return pause(claim, retryDelay(claim))
      return lane.refuse(claim, errors.unavailable(lane, answer))
  }
}

/** A claim that was not to wait stands in line. Whether that was the end of it. */
function queuedTry(claim: Claim): boolean {
  const { lane } = claim
  const answer = lane.session.requests.broken(CLAIM, 'queued a claim that was not to wait')
  lane.session.listen()
  claim.doubt()
  if (claim.only === null) return false
  lane.refuse(claim, errors.unavailable(lane, answer))
  return true
}

/** A waiter's sign of life, sent at `sentAt`, was answered. */
export function stillQueued(claim: Claim, sentAt: number, answer: RenewAnswer): void {
  const { lane } = claim
  const { upkeep } = lane.session
  lane.failure = answer.kind === 'unknown' ? answer : null
  if (answer.kind === 'unknown') claim.missed()
  // Not with any answer: the next question to a store that is slow still would be given up too early again.
  else if (lane.session.clock.now() - sentAt < upkeep.leastTimeoutOf(claim)) claim.heard()
  switch (answer.kind) {
    case 'queued':
      claim.triedInVain()
      return wait(claim, sentAt, answer)
    case 'held':
      return granted(claim, sentAt, lane.session.clock.now(), answer)
    case 'unknown':
      // As for whoever comes now: asking again cannot help, and nobody would ever be told that it is its turn.
      if (answer.retryable === false) return lane.refuse(claim, errors.unavailable(lane, answer))
      upkeep.queuedAgain(claim, retryDelay(claim))
      claim.triedInVain()
      return
    case 'renewed':
      // Who waits asks for tokens, and cannot be served without.
      return stillQueued(claim, sentAt, upkeep.noTokens())
    case 'lost':
      return claimAnew(claim)
  }
}

/** A waiter was silent for too long, or the store lost its memory: to the end of the line. */
function claimAnew(claim: Claim): void {
  const { lane } = claim
  const now = lane.session.clock.now()
  lane.drop(claim)
  // A copy of its request may still be under way, and would stand in line for nobody.
  if (claim.doubtful) lane.session.cleanup.remove(claim, true, claim.lasts)
  if (lane.needsClaim(now)) {
    const next = lane.newClaim()
    const soon = mayHurry(claim, now)
    goOnHurrying(next, claim)
    if (soon) askInTurn(next, now)
    else pause(next, RETRY_MS.longest)
  }
  lane.pump()
}

/**
 * A message says that the claim was granted. It may come from a replica, from before a failover, or twice: it is a reason
 * to ask, and only the answer is believed.
 */
export function told(claim: Claim): void {
  if (claim.state !== 'asking' && claim.state !== 'queued') return
  // What is under way may have been answered before the grant: then its answer says "queued", and is asked about again.
  claim.hearOfGrant()
  if (claim.state === 'queued' && !claim.inFlight) confirm(claim)
}

/** It may have become free. */
export function freed(claim: Claim): void {
  if (isPaused(claim) && mayHurry(claim, claim.lane.session.clock.now())) askNow(claim)
}

const isPaused = ({ state, inFlight, list }: Claim): boolean =>
  state === 'asking' && !inFlight && list !== null

/** Asks again now what would have been asked after a pause. */
function askNow(claim: Claim): void {
  if (!isPaused(claim)) return
  claim.cancel()
  ask(claim)
}

/** Asks now what would have been asked later, of a claim that stands in line too. */
export function askAgain(claim: Claim): void {
  if (claim.state === 'queued') claim.lane.session.upkeep.renewNow(claim)
  else askNow(claim)
}

/** Nobody wants the claim any more: whatever the store knows of it has to go. */
export function abandon(claim: Claim): void {
  const { lane, state, inFlight, doubtful } = claim
  lane.drop(claim)
  // With a claim request under way its answer will tell what there is to remove; with none ever answered, nothing is.
  if (state === 'asking' && inFlight) {
    lane.session.unwanted.add(claim)
    return lane.session.closing?.unsettle(claim)
  }
  if (state === 'asking' && !doubtful) return
  lane.session.cleanup.remove(claim, doubtful, claim.lasts)
}

function granted(claim: Claim, sentAt: number, now: number, answer: Held): void {
  const { lane } = claim
  const { store, upkeep, cleanup } = lane.session
  const end = validUntil(sentAt, lane.ttl, store.capabilities.earlyExpiry)
  if (now < end) {
    noLongerComing(lane.claims, claim)
    claim.hold(now, end, answer)
    upkeep.held(claim, sentAt)
    return claim.revoked ? askBeforeUse(claim) : serveFirst(claim, now)
  }
  // It took longer than the lease lasts. Nobody may have it; a new claim may be quicker.
  const { only } = claim
  lane.drop(claim)
  cleanup.remove(claim, claim.doubtful, lane.ttl)
  if (only === null) lane.failure = TOO_LATE
  else only.fail(errors.unavailable(lane, TOO_LATE))
  // Not at once: a store that answers at once and always too late would be asked without end.
  if (only === null && lane.needsClaim(now)) pause(lane.newClaim(), RETRY_MS.first)
  else lane.pump()
}

/**
 * A message said that it was taken away, before the answer that it was granted. Either may be the older news, and a message may be a
 * stranger's: the store is asked, and nobody has it before the answer.
 */
function askBeforeUse(claim: Claim): void {
  const { lane, only } = claim
  // Who does not wait does not wait for that either.
  if (only !== null) return lane.refuse(claim, null)
  // Nor may readers join it.
  claim.distrust()
  lane.session.upkeep.renewNow(claim)
}

const TOO_LATE: Unknown = {
  kind: 'unknown',
  cause: new Error('The grant arrived after its lease had ended'),
}

/** In line at the store, by an answer to a request that left at `sentAt`. */
function wait(claim: Claim, sentAt: number, { retryAfter }: Queued): void {
  claim.lane.session.upkeep.queued(claim, sentAt, retryAfter)
  if (claim.told) confirm(claim)
}

function confirm(claim: Claim): void {
  claim.forgetWord()
  if (!mayHurry(claim, claim.lane.session.clock.now())) return
  claim.want(blockFor(claim, claim.lane.waiting))
  claim.lane.session.upkeep.renewNow(claim)
}

function busy(claim: Claim, { retryAfter = Infinity, mark }: Busy): void {
  const { lane } = claim
  const { session } = lane
  if (claim.only !== null) return lane.refuse(claim, null)
  // Sections are short here. Who asks seldom because he has waited long would never get his turn among them.
  claim.refused(mark)
  session.listen()
  // Where that is answered at once, others were asked again meanwhile, and it may have become needless.
  if (claim.state !== 'asking') return
  // One that was to queue and could not is not asked at once: that would never end.
  if (claim.whenBusy === 'try' && session.canQueue) return ask(claim)
  // Nor does it only wait to be told: a connection for that may be swallowed where others work.
  const delay = session.pollDelay(claim)
  const advised = Math.ceil(retryAfter) + 1
  const soon = advised < delay && mayHurry(claim, session.clock.now())
  pause(claim, Math.max(soon ? advised : delay, session.untilHeard))
}

function pause(claim: Claim, delay: number): void {
  const { clock, expiries } = claim.lane.session
  claim.triedInVain()
  expiries.set(claim, clock.now() + delay, Math.ceil(delay))
}

function retryDelay({ attempts, lane }: Claim): number {
  return backOff(attempts, RETRY_MS, lane.session.env.random())
}

/** The answer came for a claim that nobody wants any more. */
function sweep(claim: Claim, { kind }: ClaimAnswer): void {
  const { lane, doubtful } = claim
  lane.session.unwanted.delete(claim)
  lane.session.closing?.settle(claim)
  const nothingThere = kind === 'busy' || kind === 'mismatch'
  if (!nothingThere || doubtful) lane.session.cleanup.remove(claim, doubtful, claim.lasts)
}
