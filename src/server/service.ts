import { sessionOf } from '../core/claim-queue.ts'
import { ALL } from '../core/contract.ts'
import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  Unknown,
} from '../core/contract.ts'
import type { Audit } from './audit.ts'
import type { ClaimRegistry } from './claim-registry.ts'
import type { Caller } from './caller.ts'
import { behindAnother, Failure, tooMany, unavailable } from './failure.ts'
import type { Limits } from './limits.ts'
import { Load } from './load.ts'
import { Looks } from './looks.ts'
import type { Problems } from './problems.ts'
import { Records } from './records.ts'
import { Refusals } from './refusals.ts'
import type { Right } from './rights.ts'
import type { Sessions } from './sessions.ts'
import { Shares } from './shares.ts'
import { shownOf } from './shown-claims.ts'
import { TokenBudget } from './token-budget.ts'
import { isMasked } from './masked.ts'
import { VisibleNames } from './visible-names.ts'
import { when } from './when.ts'
import { Withdrawals } from './withdrawals.ts'

export interface ServiceParts {
  readonly store: Store
  readonly registry: ClaimRegistry
  readonly sessions: Sessions
  readonly audit: Audit
  readonly limits: Limits
  /** Refuse what cannot be recorded. */
  readonly auditRequired: boolean
  readonly problems: Problems
}

export interface Revoked {
  readonly owner: string
  readonly token: bigint
}

/** Leases that are taken away in one turn of the loop. */
const REVOKED_AT_ONCE = 200
type State =
  | { readonly kind: 'starting'; readonly until: number }
  | { readonly kind: 'ready' }
  | { readonly kind: 'stopping' }

/**
 * The store behind its rules: who may do what, and how much of it; what comes of it is noted by the records. Both doors, HTTP
 * requests and sessions, lead here. Refusals are thrown as `Failure`; answers are the store's.
 */
export class LockService {
  state: State = { kind: 'ready' }
  /** What has to end when the server stops. */
  readonly onStop: Set<() => void> = new Set()
  /** Told of claims that the store did not answer. */
  onUnknown: () => void = () => undefined
  readonly store: Store
  readonly registry: ClaimRegistry
  readonly limits: Limits
  readonly load: Load = new Load()
  readonly shares: Shares = new Shares()
  private readonly looks = new Looks()
  readonly withdrawals: Withdrawals = new Withdrawals()
  private readonly tokens = new TokenBudget()
  private readonly sessions: Sessions
  readonly records: Records
  private readonly visible: VisibleNames
  readonly refusals: Refusals
  private readonly problems: Problems

  constructor({ store, registry, sessions, audit, limits, auditRequired, problems }: ServiceParts) {
    this.store = store
    this.registry = registry
    this.sessions = sessions
    this.limits = limits
    this.problems = problems
    this.visible = new VisibleNames(store, this.looks)
    this.refusals = new Refusals({ metrics: registry.metrics, audit, problems })
    this.records = new Records({ store, registry, sessions, audit, auditRequired })
  }

  /** `firstTry`: if it is busy, the same claim comes again to stand in line, and only that is noted. */
  claim(
    caller: Caller,
    request: ClaimRequest,
    timeout: number,
    { firstTry = false }: { readonly firstTry?: boolean } = {},
  ): MaybePromise<ClaimAnswer> {
    this.assertMayClaim(caller, request)
    const full = this.lineIsFull(caller, request)
    // A claim that may not wait may still be granted.
    const mayWait = !full || request.whenBusy === 'try'
    const budgeted = this.budgeted(caller, request)
    const asked: ClaimRequest = mayWait ? budgeted : { ...budgeted, whenBusy: 'try' }
    return when(this.store.claim(asked, timeout), (answer) => {
      if (answer.kind === 'unknown' && answer.scope !== 'name') this.onUnknown()
      if (!firstTry || answer.kind !== 'busy') this.records.claimed(caller, request, answer)
      if (!mayWait && answer.kind === 'busy') throw tooMany('waiters')
      return answer
    })
  }

  /** Each by itself, unless all are refused: one that is not allowed any more must not cost a process its other leases. */
  renew(
    caller: Caller,
    wishes: readonly (RenewRequest | Failure)[],
    timeout: number,
  ): MaybePromise<readonly RenewAnswer[]> {
    const judged = wishes.map((wish) => this.judged(caller, wish))
    const requests = judged.filter((one): one is RenewRequest => !(one instanceof Failure))
    const refused = judged.find((one) => one instanceof Failure)
    if (refused !== undefined && requests.length === 0) throw refused
    if (refused !== undefined) this.refusals.note(caller, 'renew', refused)
    const asked = requests.map((request) => this.budgeted(caller, request))
    return when(this.store.renew(asked, timeout), (heard) => {
      // One that was left out moves all others to their neighbours.
      const told = heard.length === asked.length ? heard : asked.map(() => NO_ANSWER)
      const answers = told.map((answer, index) => {
        const request = requests[index]
        return request === undefined ? answer : this.records.renewed(caller, request, answer)
      })
      this.records.renewedTogether(caller, answers)
      if (refused === undefined) return answers
      let next = 0
      return judged.map((one) =>
        one instanceof Failure ? refusedRenewal(one) : (answers[next++] ?? NO_ANSWER),
      )
    })
  }

  private judged(caller: Caller, wish: RenewRequest | Failure): RenewRequest | Failure {
    if (wish instanceof Failure) return wish
    return caller.principal.may('acquire', wish.name) ? wish : forbidden('acquire')
  }

  release(
    caller: Caller,
    claim: ClaimRef,
    next: ClaimRequest | undefined,
    timeout: number,
  ): MaybePromise<ReleaseResult> {
    this.assertMay(caller, 'acquire', claim.name)
    const refusal = next === undefined ? null : this.refusal(caller, claim, next)
    const asked = refusal === null && next !== undefined ? this.budgeted(caller, next) : undefined
    return when(this.store.release(claim, asked, timeout), (result) => {
      this.records.ended(caller, 'release', claim, result.released)
      // Giving something back is never refused for what was asked along with it.
      const { released } = result
      if (refusal !== null) return { released, next: { kind: 'unknown', cause: refusal } }
      if (asked === undefined || result.next === undefined) return result
      try {
        this.records.claimed(caller, asked, result.next)
        return result
      } catch (cause) {
        return { released, next: { kind: 'unknown', cause } }
      }
    })
  }

  withdraw(caller: Caller, claim: ClaimRef, timeout: number): MaybePromise<ReleaseAnswer> {
    this.assertMay(caller, 'acquire', claim.name)
    // What is known here was counted when it was claimed.
    if (!this.registry.knows(claim)) this.assertFewWithdrawals(caller)
    this.withdrawals.add(caller.principal)
    return when(this.store.withdraw(claim, timeout), (answer) => {
      this.records.ended(caller, 'withdraw', claim, answer)
      return answer
    })
  }

  downgrade(caller: Caller, claim: ClaimRef, timeout: number): MaybePromise<DowngradeAnswer> {
    const { store } = this
    this.assertMay(caller, 'acquire', claim.name)
    if (store.downgrade === undefined) {
      throw new Failure('UNSUPPORTED', `The ${store.kind} store cannot turn a write lock into a read lock.`)
    }
    return when(store.downgrade(claim, timeout), (answer) => {
      this.records.downgraded(caller, claim, answer)
      return answer
    })
  }

  inspect(caller: Caller, name: string, timeout: number): MaybePromise<NameInfo | Unknown> {
    this.assertMay(caller, 'read', name)
    this.assertStarted()
    return this.looks.take(caller.principal, () =>
      when(this.store.inspect(name, timeout), (info) => ('kind' in info ? info : shownOf(info))),
    )
  }

  list({ principal }: Caller, query: ListQuery, timeout: number): MaybePromise<ListPage | Unknown> {
    this.assertStarted()
    // No name has one, and some stores cannot even be asked.
    if (query.prefix?.includes('\0') === true) return { names: [] }
    if (principal.mayEverywhere('read'))
      return this.looks.take(principal, () => this.store.list(query, timeout))
    return this.visible.list(principal, query, timeout)
  }

  /** Takes a name from whoever holds it. The next grant's token is larger, so a resource that checks it is safe. */
  async forceRelease(
    caller: Caller,
    { name, reason, token }: { name: string; reason: string; token: bigint | undefined },
    timeout: number,
  ): Promise<readonly Revoked[]> {
    this.assertMay(caller, 'force-release', name)
    this.assertStarted()
    this.records.assertPossible()
    const info = await this.store.inspect(name, timeout)
    if ('kind' in info) throw unavailable()
    const revoked: Revoked[] = []
    for (const [index, { id, owner, token: held = 0n }] of info.holders.entries()) {
      if (token !== undefined && token !== held) continue
      // Others have their turn in between: a name may have two hundred thousand readers.
      if (index % REVOKED_AT_ONCE === REVOKED_AT_ONCE - 1) await new Promise((resume) => setImmediate(resume))
      // Each leaves a note at the store, as if its holder had withdrawn it.
      this.withdrawals.add(caller.principal)
      const answer = await this.store.withdraw({ name, id }, timeout)
      this.records.forced(caller, { name, id, result: answer.kind, token: held, reason })
      if (answer.kind === 'unknown') throw unavailable()
      // Held, and not by the id that we were shown.
      if (answer.kind === 'not-held' && isMasked(id)) throw behindAnother()
      this.registry.revoked({ name, id })
      this.sessions.tell(id, { kind: 'revoked', name, id })
      if (answer.kind === 'released') revoked.push({ owner, token: held })
    }
    return revoked
  }

  assertMay({ principal }: Caller, right: Right, name: string): void {
    if (!principal.may(right, name)) throw forbidden(right)
  }

  assertOpen(): void {
    const { state } = this
    if (state.kind === 'stopping') {
      throw new Failure('STOPPING', 'The lock server is stopping. Leases stay until they run out.', {
        retryAfter: 1,
      })
    }
    if (state.kind === 'starting') {
      const retryAfter = Math.max(1, Math.ceil((state.until - performance.now()) / 1000))
      const message = 'The lock server waits until the leases of its former run have ended.'
      throw new Failure('STARTING', message, { retryAfter })
    }
  }

  /** Of leases of the former run nothing is known: nobody may be told that there is none. */
  private assertStarted(): void {
    if (this.state.kind === 'starting') this.assertOpen()
  }

  private assertMayClaim(caller: Caller, request: ClaimRequest): void {
    const { name, id, ttl, capacity } = request
    this.assertMay(caller, 'acquire', name)
    this.sessions.assertOwn(caller.principal, sessionOf(id))
    this.assertOpen()
    this.records.assertPossible()
    const { shared, permits } = this.store.capabilities
    if (capacity === ALL ? !shared : capacity > 1 && !permits) {
      throw new Failure(
        'UNSUPPORTED',
        `The ${this.store.kind} store has no ${capacity === ALL ? 'shared locks' : 'permits'}.`,
      )
    }
    this.records.assertOneName({ name, id })
    // The store would say that it is held, and mean what it was asked for first: a reader would take itself for a writer.
    if (!this.registry.agrees(request))
      throw new Failure('ID_IN_USE', 'This id is that of a claim in another mode, or for other permits.')
    const { minTtl, maxTtl, leasesPerPrincipal } = this.limits
    if (ttl < minTtl || ttl > maxTtl) {
      throw new Failure('INVALID_ARGUMENT', `ttl must be between ${minTtl} and ${maxTtl} milliseconds.`)
    }
    if (this.registry.knows({ name, id })) return
    if (this.registry.leasesOf(caller.principal) >= leasesPerPrincipal) throw tooMany('leases')
    if (this.registry.isFullFor(caller.principal)) throw tooMany('claims in memory')
    // Each claim may have to be withdrawn.
    this.assertFewWithdrawals(caller)
  }

  private assertFewWithdrawals({ principal }: Caller): void {
    if (this.withdrawals.areTooMany(principal)) throw tooMany('withdrawals of the last minute')
  }

  private budgeted<R extends ClaimRequest | RenewRequest>({ principal }: Caller, request: R): R {
    const tokens = this.tokens.take(principal, request.tokens)
    return tokens === request.tokens ? request : { ...request, tokens }
  }

  /** Why nothing is claimed along with a release. */
  private refusal(caller: Caller, { name }: ClaimRef, next: ClaimRequest): Failure | null {
    // The store looks at one name in one step: it would be claimed there, and counted elsewhere.
    if (next.name !== name) return new Failure('INVALID_ARGUMENT', 'next must be a claim for the same name.')
    try {
      this.assertMayClaim(caller, next)
      // It is put in line whatever it says.
      if (this.lineIsFull(caller, next)) throw tooMany('waiters')
      return null
    } catch (failure) {
      if (failure instanceof Failure) return failure
      throw failure
    }
  }

  private lineIsFull({ principal }: Caller, { name, id }: ClaimRequest): boolean {
    const { waitersPerName, waitersPerPrincipal } = this.limits
    const full =
      this.registry.waitersFor(name) >= waitersPerName ||
      this.registry.waitersOf(principal) >= waitersPerPrincipal
    return full && !this.registry.knows({ name, id })
  }

  /** Something that should not happen, in a request or a session. */
  noteFault(error: unknown, { request }: Caller): void {
    this.problems.fault(error, request)
  }
}

/** The same words whether or not the name is in use. */
const forbidden = (right: Right): Failure =>
  new Failure('FORBIDDEN', `This token may not ${right} that name.`)

const refusedRenewal = (cause: Failure): Unknown => ({ kind: 'unknown', cause, retryable: false })
const NO_ANSWER: Unknown = { kind: 'unknown', cause: new Error('The store left an answer out') }
