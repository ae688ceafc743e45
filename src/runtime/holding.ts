import type { ReleaseResult, Unknown } from '../core/contract.ts'
import { RELEASE } from '../core/answers.ts'
import { shown } from '../core/printing.ts'
import type { Claim } from './claim.ts'
import { withClaim, without } from './claims.ts'
import { events } from './events.ts'
import { ClaimLease, EXPIRED, RELEASED } from './lease.ts'
import type { ReleaseOutcome } from './lease.ts'
import type { Task } from './task.ts'
import { blockFor, isUpToDate, mayPassOn, YIELD_EVERY } from './turn.ts'

/**
 * From "I have it" to "I gave it up": a claim that is held goes from task to task until its turn is over. How it was come
 * by is in asking.ts.
 */

/** Whom a new grant is for. */
export function serveFirst(claim: Claim, now: number): void {
  const { only } = claim
  if (claim.reserved) return
  if (only === null) return serve(claim, now)
  claim.openToAll()
  only.give(lend(claim, now, only.maxHold, only))
  resume(claim)
}

/** A renewal was answered, or the event loop had its chance: go on with the turn. */
export function resume(claim: Claim): void {
  const { lane } = claim
  if (claim.state !== 'held' || (claim.users > 0 && !lane.shared)) return
  const now = lane.session.clock.now()
  if (lane.waiting > 0 && mayPassOn(claim, now)) return passOn(claim, now)
  if (claim.users === 0) giveUpInBackground(claim)
  // Readers that may not share it any more stand in line at the store, behind whoever it is given up for.
  else if (lane.waiting > 0) lane.pump()
}

/** The store did not answer a renewal. A claim that nobody uses just then is not worth holding on to. */
export function renewalFailed(claim: Claim): void {
  if (claim.users === 0) giveUpInBackground(claim)
}

/** A lease is done with. */
export function finish(claim: Claim, lease: ClaimLease, now: number): Promise<ReleaseOutcome> {
  claim.dropLease(lease)
  if (claim.state !== 'held') return EXPIRED
  if (claim.users > 0) return RELEASED
  const { lane } = claim
  if (lane.waiting > 0 && mayPassOn(claim, now)) {
    // Readers in line may be there because the store is being asked whether somebody else waits.
    if (lane.shared && !isUpToDate(claim, now)) refill(claim)
    else passOn(claim, now)
    return RELEASED
  }
  return giveUp(claim, now)
}

/** A task's part in the claim, with a token of its own. Null: it did not have to wait. */
export function lend(claim: Claim, now: number, maxHold: number, task: Task | null = null): ClaimLease {
  // It has its lease. Whoever is told of that may abort, and must not find a task that stands in no line.
  task?.settle()
  const token = claim.begin()
  const lease = new ClaimLease(claim, token, now, maxHold)
  claim.addLease(lease)
  if (events.acquired.hasSubscribers) {
    const { name, session } = claim.lane
    const waited = task === null ? 0 : session.env.mono() - task.since
    const tell = (): void =>
      events.acquired.publish(shown({ name, store: session.store.kind, token, waited }))
    const context = task?.context ?? null
    if (context === null) tell()
    else context.runInAsyncScope(tell)
  }
  return lease
}

/** Every hand-over needs a token of its own: fetch more. */
export function refill(claim: Claim): void {
  if (claim.inFlight) return
  const { waiting, session } = claim.lane
  claim.want(blockFor(claim, waiting))
  session.upkeep.renewNow(claim)
}

/** The claim goes to the next in line, or to all readers in line. */
function serve(claim: Claim, now: number): void {
  const { lane } = claim
  while (claim.tokensLeft > 0 && (lane.shared || claim.users === 0)) {
    const task = lane.line.shift()
    if (task === null) break
    task.give(lend(claim, now, task.maxHold, task))
  }
  if (claim.users === 0) return lane.waiting === 0 ? giveUpInBackground(claim) : refill(claim)
  lane.trim()
  // Readers are left for whom there was no token.
  if (lane.shared && lane.waiting > 0) lane.pump()
}

/** The turn goes on: with those in line, or with more tokens for them. */
export function passOn(claim: Claim, now: number): void {
  if (claim.unyielded >= YIELD_EVERY) {
    claim.yielded()
    return claim.lane.session.env.defer(() => resume(claim))
  }
  if (claim.tokensLeft === 0) return refill(claim)
  serve(claim, now)
}

/** Ends the turn. For the tasks still in line here, the release and the next claim are one request. */
function giveUp(claim: Claim, sentAt: number): Promise<ReleaseOutcome> {
  const { lane } = claim
  const { session } = lane
  lane.lastTurn = claim.sections
  const leaving = claim.leaving(!claim.contended && sentAt < claim.validUntil)
  if (claim.contended && session.unordered) lane.politeUntil = sentAt + session.pollDelay(FRESH)
  lane.drop(claim)
  const next = lane.needsClaim(sentAt) && session.canQueue ? lane.newClaim() : undefined
  next?.asked(blockFor(next, lane.waiting), 'queue', session.era)
  session.closing?.unsettle(claim)
  let outcome = null as ReleaseOutcome | null
  let resolve = null as ((outcome: ReleaseOutcome) => void) | null
  session.ask<ReleaseResult>(
    RELEASE,
    () => session.store.release(leaving, next?.request(), session.requestTimeout),
    (answer) => {
      const result = 'kind' in answer ? { released: answer, next: answer } : answer
      session.closing?.settle(claim)
      session.leaving = without(session.leaving, claim)
      outcome = released(claim, result.released.kind)
      resolve?.(outcome)
      if (next !== undefined) lane.heardNext(next, sentAt, result.next ?? HALF_AN_ANSWER)
      lane.pump()
    },
  )
  if (outcome === null) {
    // Should somebody else take it away meanwhile, even we ourselves, the answer would be that the lease had ended.
    session.leaving = withClaim(session.leaving, claim)
    return new Promise((settle) => (resolve = settle))
  }
  return outcome === 'released' ? RELEASED : Promise.resolve(outcome)
}

function giveUpInBackground(claim: Claim): void {
  // Cannot reject: whatever goes wrong is an outcome, and what is left at the store is cleaned up.
  giveUp(claim, claim.lane.session.clock.now()).catch(() => {})
}

function released(claim: Claim, kind: 'released' | 'not-held' | 'unknown'): ReleaseOutcome {
  // A claim that had to be asked for twice may have a copy of its request still under way.
  if (kind === 'unknown' || claim.doubtful) claim.lane.session.cleanup.remove(claim, true, claim.ttl)
  return kind === 'not-held' ? 'expired' : kind
}

/** A waiter that has just begun to ask. */
const FRESH = { attempts: 0 }
const HALF_AN_ANSWER: Unknown = {
  kind: 'unknown',
  cause: new Error('The store did not answer the second half'),
}
