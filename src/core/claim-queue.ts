import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  Held,
  Queued,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  StoreEvent,
} from './contract.ts'
import { NOBODY, NONE } from './queue-state.ts'
import type { Holder, Instant, QueueState, Waiter } from './queue-state.ts'
import { pickUpTime } from './validity.ts'

export { emptyQueue, isIdle, isSpent, QueueState, view } from './queue-state.ts'
export type { Instant } from './queue-state.ts'

/**
 * The rule that all of holdfast rests on: claims on one name are granted in the order in which they came, while the
 * weights held fit into the capacity. Every store does what this file says; the memory store by calling it.
 *
 * `step(state, command, now)` is deterministic and does no I/O. It changes the state that it is given, because a queue of
 * ten thousand waiters must not be copied for every command; nothing else reads or keeps that state.
 */

export type QueueCommand =
  | { readonly kind: 'claim'; readonly request: ClaimRequest }
  | { readonly kind: 'renew'; readonly request: RenewRequest }
  | { readonly kind: 'release'; readonly claim: ClaimRef; readonly next?: ClaimRequest | undefined }
  | { readonly kind: 'withdraw'; readonly claim: ClaimRef }
  | { readonly kind: 'downgrade'; readonly claim: ClaimRef }

export interface AnswerOf {
  claim: ClaimAnswer
  renew: RenewAnswer
  release: ReleaseResult
  withdraw: ReleaseAnswer
  downgrade: DowngradeAnswer
}

/** What a session is to be told. */
export interface Notice {
  readonly session: string
  readonly event: StoreEvent
}

export interface Outcome<K extends QueueCommand['kind']> {
  readonly answer: AnswerOf[K]
  readonly notices: readonly Notice[]
}

/** Whether a session can be told anything now. A waiter that cannot be told keeps its place but is passed over. */
export type Reachable = (session: string) => boolean

/** How long a withdrawn id stays refused: longer than a network keeps a lost packet alive. */
export const WITHDRAWN_MS = 60_000

const NO_NOTICES: readonly Notice[] = []
const everyone: Reachable = () => true

export function sessionOf(id: string): string {
  return id.slice(0, id.indexOf('.'))
}

export function step<C extends QueueCommand>(
  state: QueueState,
  command: C,
  now: Instant,
  reachable: Reachable = everyone,
): Outcome<C['kind']> {
  const transition = new Transition(state, now, reachable, nameOf(command))
  transition.forgetExpired()
  const answer = transition.apply(command)
  return { answer: answer as AnswerOf[C['kind']], notices: transition.notices }
}

function nameOf(command: QueueCommand): string {
  return 'request' in command ? command.request.name : command.claim.name
}

interface Promotion {
  readonly granted?: Held
  readonly blocked: boolean
}

const RENEWED: RenewAnswer = { kind: 'renewed', contended: false }
const RENEWED_CONTENDED: RenewAnswer = { kind: 'renewed', contended: true }
const NEVER = {}
const NO_PROMOTION: Promotion = { blocked: false }

class Transition {
  notices: readonly Notice[] = NO_NOTICES
  private readonly state: QueueState
  private readonly now: Instant
  private readonly reachable: Reachable
  private readonly name: string

  constructor(state: QueueState, now: Instant, reachable: Reachable, name: string) {
    this.state = state
    this.now = now
    this.reachable = reachable
    this.name = name
  }

  apply(command: QueueCommand): AnswerOf[QueueCommand['kind']] {
    switch (command.kind) {
      case 'claim':
        return this.claim(command.request)
      case 'renew':
        return this.renew(command.request)
      case 'release':
        return this.release(command.claim, command.next)
      case 'withdraw':
        return this.withdraw(command.claim)
      case 'downgrade':
        return this.downgrade(command.claim)
    }
  }

  forgetExpired(): void {
    const { state, now } = this
    for (const [id, until] of state.withdrawn) {
      if (until > now.ms) break
      state.withdrawn.delete(id)
    }
    if (now.ms < state.nextExpiry) return
    state.nextExpiry = Infinity
    for (const holder of state.holders.values()) {
      if (holder.expiresAt <= now.ms) this.removeHolder(holder)
      else if (holder.expiresAt < state.nextExpiry) state.nextExpiry = holder.expiresAt
    }
  }

  private claim(request: ClaimRequest): ClaimAnswer {
    const { state } = this
    const known = this.repeated(request)
    if (known !== undefined) return known
    if (state.withdrawn.size > 0 && state.withdrawn.has(request.id)) return { kind: 'busy' }

    // Those ahead first. If all of them are granted, or only the unreachable are left, it is the newcomer's turn.
    const { blocked } = this.promote()
    if (!this.agree(request.capacity)) return { kind: 'mismatch', capacity: state.capacity }
    if (!blocked && state.used + request.weight <= state.capacity) {
      return this.held(this.grant(request, request.ttl))
    }
    if (request.whenBusy === 'try') {
      return { kind: 'busy', ...this.retryAfter() }
    }
    this.enqueue(request)
    if (state.waiters.size === 1) this.tellHolders()
    return this.queued()
  }

  /** The answer to a claim that is here already, by its id: the driver or the runtime sent it again. */
  private repeated(request: ClaimRequest): ClaimAnswer | undefined {
    const holder = this.state.holders.get(request.id)
    if (holder !== undefined) {
      this.keepHolder(holder, request.ttl)
      return this.held(holder)
    }
    const waiter = this.liveWaiter(request.id)
    return waiter && this.heardFrom(waiter, request)
  }

  private renew(request: RenewRequest): RenewAnswer {
    const { state } = this
    const holder = state.holders.get(request.id)
    if (holder !== undefined) {
      this.keepHolder(holder, request.ttl)
      if (request.tokens === 0) return state.waiters.size > 0 ? RENEWED_CONTENDED : RENEWED
      this.giveTokens(holder, request.tokens)
      return this.held(holder)
    }
    const waiter = this.liveWaiter(request.id)
    if (waiter !== undefined) return this.heardFrom(waiter, request)
    this.promote()
    return { kind: 'lost' }
  }

  /** A waiter that was silent for too long is none. */
  private liveWaiter(id: string): Waiter | undefined {
    const { waiters } = this.state
    // To look for an id, also where there is none, its hash is made: a twentieth of an acquire in memory.
    if (waiters.size === 0) return undefined
    const waiter = waiters.get(id)
    if (waiter === undefined || waiter.keptUntil > this.now.ms) return waiter
    waiters.delete(id)
    return undefined
  }

  private heardFrom(waiter: Waiter, { ttl, patience }: ClaimRequest | RenewRequest): Held | Queued {
    waiter.ttl = ttl
    waiter.patience = patience
    waiter.keptUntil = this.now.ms + patience
    return this.promote(waiter.id).granted ?? this.queued()
  }

  private release(claim: ClaimRef, next: ClaimRequest | undefined): ReleaseResult {
    const { state } = this
    const released = this.remove(claim.id)
    if (next === undefined) {
      this.promote()
      return { released }
    }
    const known =
      state.holders.get(next.id) !== undefined || state.waiters.has(next.id) || state.withdrawn.has(next.id)
    if (known || !this.agree(next.capacity)) {
      this.promote()
      return { released, next: this.claim(next) }
    }
    // In line before the others are granted, so that they learn at once that somebody waits behind them.
    this.enqueue(next)
    const alone = state.waiters.size === 1
    const { granted } = this.promote(next.id)
    if (granted === undefined && alone) this.tellHolders()
    return { released, next: granted ?? this.queued() }
  }

  private withdraw(claim: ClaimRef): ReleaseAnswer {
    const answer = this.remove(claim.id)
    if (this.state.withdrawn === NONE) this.state.withdrawn = new Map()
    // To the end, so that the oldest are always first.
    this.state.withdrawn.delete(claim.id)
    this.state.withdrawn.set(claim.id, this.now.ms + WITHDRAWN_MS)
    this.promote()
    return answer
  }

  private downgrade({ id }: ClaimRef): DowngradeAnswer {
    // A waiter whose turn has come holds it, so that a repeated command finds what the first one found.
    this.promote()
    const { state } = this
    const holder = state.holders.get(id)
    if (holder !== undefined) {
      state.used -= holder.weight - 1
      holder.weight = 1
      // The readers at the head of the queue, up to the next writer.
      this.promote()
    }
    return holder === undefined ? { kind: 'lost' } : { kind: 'downgraded' }
  }

  /**
   * Grants from the head while it fits. The asker gets its grant as the answer, for its full ttl; the others are
   * told, and have until their patience ends to pick theirs up. `blocked`: somebody is left who must go first.
   */
  private promote(asker?: string): Promotion {
    const { state, now } = this
    if (state.waiters.size === 0) return NO_PROMOTION
    let granted: Held | undefined
    let blocked = false
    for (const waiter of state.waiters.values()) {
      if (waiter.keptUntil <= now.ms) {
        state.waiters.delete(waiter.id)
        continue
      }
      if (state.used + waiter.weight > state.capacity) {
        blocked = true
        break
      }
      if (waiter.id === asker) {
        state.waiters.delete(waiter.id)
        granted = this.held(this.grant(waiter, waiter.ttl))
      } else if (this.reachable(sessionOf(waiter.id))) {
        state.waiters.delete(waiter.id)
        const holder = this.grant(waiter, pickUpTime(waiter))
        const { token, count, contended } = this.held(holder)
        this.tell(waiter.id, { kind: 'granted', name: this.name, id: waiter.id, token, count, contended })
      }
    }
    return granted === undefined ? { blocked } : { granted, blocked }
  }

  /** A name has one capacity while anybody holds it or waits for it. */
  private agree(capacity: number): boolean {
    const { state } = this
    if (state.holders.size === 0 && state.waiters.size === 0) state.capacity = capacity
    return state.capacity === capacity
  }

  private enqueue({ id, owner, weight, tokens, ttl, patience }: ClaimRequest): void {
    const keptUntil = this.now.ms + patience
    if (this.state.waiters === NOBODY) this.state.waiters = new Map()
    this.state.waiters.set(id, { id, owner, weight, tokens, ttl, patience, keptUntil })
  }

  private grant({ id, owner, weight, tokens }: Waiter | ClaimRequest, ttl: number): Holder {
    const holder: Holder = { id, owner, weight, token: 0, count: 0, expiresAt: 0 }
    this.giveTokens(holder, tokens)
    this.state.used += weight
    this.state.holders.add(holder)
    this.keepHolder(holder, ttl)
    return holder
  }

  private giveTokens(holder: Holder, count: number): void {
    holder.token = Math.max(this.state.fence + 1, this.now.micros)
    holder.count = count
    this.state.fence = holder.token + count - 1
  }

  private keepHolder(holder: Holder, ttl: number): void {
    holder.expiresAt = this.now.ms + ttl
    if (holder.expiresAt < this.state.nextExpiry) this.state.nextExpiry = holder.expiresAt
  }

  private held({ token, count }: Holder): Held {
    return { kind: 'held', token: BigInt(token), count, contended: this.state.waiters.size > 0 }
  }

  private queued(): Queued {
    return { kind: 'queued', ...this.retryAfter() }
  }

  /** When a lease could end, at the earliest. */
  private retryAfter(): { readonly retryAfter?: number } {
    const { nextExpiry } = this.state
    return nextExpiry === Infinity ? NEVER : { retryAfter: nextExpiry - this.now.ms }
  }

  private remove(id: string): ReleaseAnswer {
    const holder = this.state.holders.get(id)
    if (holder !== undefined) this.removeHolder(holder)
    else if (this.liveWaiter(id) === undefined) return { kind: 'not-held' }
    else this.state.waiters.delete(id)
    return { kind: 'released' }
  }

  private removeHolder(holder: Holder): void {
    this.state.holders.delete(holder.id)
    this.state.used -= holder.weight
  }

  private tellHolders(): void {
    for (const { id } of this.state.holders.values())
      this.tell(id, { kind: 'contended', name: this.name, id })
  }

  private tell(id: string, event: StoreEvent): void {
    if (this.notices === NO_NOTICES) this.notices = []
    ;(this.notices as Notice[]).push({ session: sessionOf(id), event })
  }
}
