import { sessionOf } from '../core/claim-queue.ts'
import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  Store,
} from '../core/contract.ts'
import type { Audit } from './audit.ts'
import type { ClaimRegistry } from './claim-registry.ts'
import type { Caller } from './caller.ts'
import { Failure, unrecordable } from './failure.ts'
import type { Sessions } from './sessions.ts'

export interface RecordsParts {
  readonly store: Store
  readonly registry: ClaimRegistry
  readonly sessions: Sessions
  readonly audit: Audit
  /** Refuse what cannot be recorded. */
  readonly auditRequired: boolean
}

/** A force-release of one lease. */
export interface Revocation extends ClaimRef {
  readonly result: ReleaseAnswer['kind']
  readonly token: bigint
  readonly reason: string
}

const TAKE_BACK_MS = 5000

/**
 * What became of every claim: in the book, which limits and numbers go by, and in the audit log. Where that is required, a
 * grant is in the file before anybody hears of it, or is taken back.
 */
export class Records {
  private readonly store: Store
  private readonly registry: ClaimRegistry
  private readonly sessions: Sessions
  private readonly audit: Audit
  private readonly auditRequired: boolean

  constructor({ store, registry, sessions, audit, auditRequired }: RecordsParts) {
    this.store = store
    this.registry = registry
    this.sessions = sessions
    this.audit = audit
    this.auditRequired = auditRequired
    registry.onLost = ({ caller, name, id, token }) =>
      audit.record(caller, 'end', { name, result: 'lost', token, id })
    sessions.onGrant = ({ name, id, token }, listening) => this.told({ name, id }, token, listening)
  }

  assertPossible(): void {
    // Tried again each time: a full disk may have room by now.
    if (this.auditRequired && !(this.audit.on && this.audit.flush())) throw unrecordable()
  }

  /** One id for many names would count as one lease. */
  assertOneName({ name, id }: ClaimRef): void {
    const other = this.registry.nameOf(id)
    if (other !== undefined && other !== name)
      throw new Failure('ID_IN_USE', 'This id is that of a claim for another name. Each claim needs its own.')
  }

  claimed(caller: Caller, request: ClaimRequest, answer: ClaimAnswer): void {
    // Two with one id may have been under way to a slow store at once.
    if (answer.kind === 'held' || answer.kind === 'queued') {
      try {
        this.assertOneName(request)
      } catch (failure) {
        this.takeBack(request)
        throw failure
      }
    }
    if (answer.kind === 'held') {
      if (!this.granted(caller, request, answer.token, 'claim')) throw unrecordable()
    } else {
      const { name, id } = request
      this.audit.record(caller, 'claim', { name, result: answer.kind, id })
    }
    this.registry.claimed(caller, request, answer)
  }

  /**
   * False when it had to be recorded and could not be: then it is taken back, and nobody may hear of it. What was asked for
   * once more is not: its client may have been told the first time.
   */
  granted(caller: Caller, claim: ClaimRef, token: bigint | undefined, what = 'grant'): boolean {
    if (this.recorded(caller, claim, token, what)) return true
    if (this.registry.hasHeld(claim, token)) return false
    const { name, id } = claim
    this.audit.record(caller, what, { name, result: 'taken back: not recorded in time', id })
    this.takeBack({ name, id })
    return false
  }

  /** One of several renewals. What its client may hear of it. */
  renewed(caller: Caller, request: RenewRequest, answer: RenewAnswer): RenewAnswer {
    if (answer.kind === 'held' || answer.kind === 'renewed') {
      const token = answer.kind === 'held' ? answer.token : undefined
      if (!this.mayBeRenewed(caller, request, token)) return { kind: 'unknown', cause: unrecordable() }
    }
    if (answer.kind !== 'lost' && answer.kind !== 'unknown') this.shown(caller, request)
    this.registry.renewed(request, answer)
    return answer
  }

  /** All renewals of one request have one line. */
  renewedTogether(caller: Caller, answers: readonly RenewAnswer[]): void {
    if (!this.audit.on) return
    const lost = answers.filter(({ kind }) => kind === 'lost').length
    const result = lost === 0 ? 'done' : `${lost} lost`
    this.audit.record(caller, 'renew', { result, count: answers.length })
  }

  downgraded(caller: Caller, { name, id }: ClaimRef, { kind }: DowngradeAnswer): void {
    if (kind === 'downgraded') this.registry.downgraded({ name, id })
    this.audit.record(caller, 'downgrade', { name, result: kind, id })
  }

  ended(caller: Caller, what: string, claim: ClaimRef, answer: ReleaseAnswer): void {
    this.registry.released(claim, answer)
    this.audit.record(caller, what, { name: claim.name, result: answer.kind, id: claim.id })
  }

  /** A place in line was given up. It may have become a lease: then that goes on, and counts. */
  left(caller: Caller, request: RenewRequest, answer: RenewAnswer): void {
    if (answer.kind === 'queued') return this.ended(caller, 'leave', request, { kind: 'released' })
    if (answer.kind === 'lost') return this.ended(caller, 'leave', request, { kind: 'not-held' })
    this.registry.renewed(request, answer)
    const { name, id } = request
    this.audit.record(caller, 'leave', { name, result: answer.kind === 'renewed' ? 'held' : answer.kind, id })
  }

  /** Whatever came of it: that it was tried is recorded. */
  forced(caller: Caller, revocation: Revocation): void {
    this.audit.record(caller, 'force-release', revocation)
  }

  /** Whoever knows a claim, held or in line, may be its maker under another name. */
  private shown({ principal }: Caller, { id }: ClaimRef): void {
    const maker = this.registry.whose(id)
    if (maker !== undefined && maker !== principal.name) this.sessions.renewedBy(principal, sessionOf(id))
  }

  /** A message says that a claim was granted. False when nobody may hear of it. */
  private told(claim: ClaimRef, token: bigint, listening: Caller | null): boolean {
    const waiter = this.registry.waiterOf(claim)
    if (waiter !== null) return this.granted(waiter, claim, token)
    if (listening === null) return true
    return this.visited(listening, claim, token)
  }

  /** A waiter may learn by a renewal that the lock is its own. False when that had to be recorded and could not be. */
  private mayBeRenewed(caller: Caller, claim: ClaimRef, token: bigint | undefined): boolean {
    const waiter = this.registry.waiterOf(claim)
    return waiter === null ? this.visited(caller, claim, token) : this.granted(waiter, claim, token)
  }

  /**
   * Of a lease that was asked for at another server of this store, which may have recorded the grant or not have heard of
   * it. So it is not taken back here: whoever asks hears nothing, and asks again.
   */
  private visited(caller: Caller, claim: ClaimRef, token: bigint | undefined): boolean {
    const { registry } = this
    if (registry.knows(claim) || registry.isVisitor(claim)) return true
    if (!this.recorded(caller, claim, token, 'grant')) return false
    registry.visits(claim, PICK_UP_MS)
    return true
  }

  /** False when it had to be recorded and could not be. */
  private recorded(caller: Caller, { name, id }: ClaimRef, token: bigint | undefined, what: string): boolean {
    if (!this.audit.on) return true
    const facts = { name, result: 'held', id, ...(token === undefined ? {} : { token }) }
    if (this.auditRequired) return this.audit.recordNow(caller, what, facts)
    this.audit.record(caller, what, facts)
    return true
  }

  /** What the store does not hear of ends with its ttl; nobody knows that it is held. */
  private takeBack({ name, id }: ClaimRef): void {
    const taken = this.store.withdraw({ name, id }, TAKE_BACK_MS)
    if (taken instanceof Promise) taken.catch(() => undefined)
  }
}

/** Who was told of its grant asks about it soon, and is remembered for as long as its lease from then on. */
const PICK_UP_MS = 60_000
