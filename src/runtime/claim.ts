import type { ClaimRef, ClaimRequest, Held, ReleaseRequest, RenewRequest } from '../core/contract.ts'
import { extended, pickUpTime } from '../core/validity.ts'
import { Deadline } from './deadlines.ts'
import type { Lane } from './lane.ts'
import type { ClaimLease } from './lease.ts'
import type { Task } from './task.ts'

/**
 * - `asking`: a request is under way, or the next one waits for its time.
 * - `queued`: in line at the store.
 * - `held`: granted, valid until `validUntil`.
 * - `gone`: released, lost or abandoned; nothing that still arrives for it matters.
 */
export type ClaimState = 'asking' | 'queued' | 'held' | 'gone'

/**
 * One claim of this process at the store, from the first request to the last. Serves the tasks of its lane. What it is, is written here and
 * nowhere else; when, is decided in asking.ts, holding.ts, upkeep.ts and by its lane.
 */
export class Claim extends Deadline {
  /** Another one after a downgrade. */
  lane: Lane
  readonly id: string
  state: ClaimState = 'asking'
  whenBusy: 'queue' | 'try' = 'try'
  /** How many tokens the next request asks for. */
  tokens = 1

  /** A request for it is under way. */
  inFlight = false
  /** The outcome of a request is unknown: the store may know more of this claim than we do. */
  doubtful = false
  /** How often it was asked for in vain, or heard that it still waits. */
  attempts = 0
  /** How many questions of a waiter's, one after the other, were not answered in time. */
  unheard = 0
  /** When the turn began. */
  since = 0
  /** See hurry.ts. */
  hurriedUntil = 0

  validUntil = 0
  /** How the lock looked when it was last refused; see `Busy`. */
  mark: string | undefined = undefined
  /** Others wait for it at the store. */
  contended = false
  /** When the store's last answer about it came (readers' only), and of which era that is; see `Session.era`. */
  heardAt = 0
  era = 0
  private upkeep: RenewRequest | null = null
  nextToken = 0n
  tokensLeft = 0
  /** Sections of this turn. */
  sections = 0
  /** Sections since the event loop last had its chance. */
  unyielded = 0
  /** Who uses it: one lease, or a set of readers' leases. */
  users = 0
  lease: ClaimLease | null = null
  leases: Set<ClaimLease> | null = null

  /** The only task it is for: one that will not wait. */
  only: Task | null
  /** Whoever made it takes the lease himself if the store answers at once. */
  reserved = false
  /** A message said that it was granted, and no request has left since. */
  told = false
  /** A message said that it was taken away by force, before an answer said that it was granted. */
  revoked = false

  constructor(lane: Lane, id: string, only: Task | null) {
    super()
    this.lane = lane
    this.id = id
    this.only = only
  }

  get name(): string {
    return this.lane.name
  }
  get weight(): number {
    return this.lane.kind.weight
  }
  get ttl(): number {
    return this.lane.kind.ttl
  }
  get patience(): number {
    return this.lane.session.patience
  }
  /** For so long the store may know of it if it hears no more: a waiter may be granted it when its patience is nearly over. */
  get lasts(): number {
    return Math.max(this.ttl, this.patience + pickUpTime(this))
  }

  // What goes to a store is plain and frozen: it may keep it, spread it or send it, and find in it what was asked and nothing later. Each time
  // it is a new object, so that one that is not frozen, for a store that is trusted, can be changed for nobody else.

  request(): ClaimRequest {
    const { id, lane, tokens, whenBusy } = this
    const { weight, capacity, ttl } = lane.kind
    const { patience, owner, trusted } = lane.session
    const request = { name: lane.name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner }
    return trusted ? request : Object.freeze(request)
  }

  renewal(): RenewRequest {
    const { id, name, ttl, patience, tokens } = this
    if (tokens > 0) return Object.freeze({ name, id, ttl, patience, tokens })
    // Always the same, for as long as it lives.
    this.upkeep ??= Object.freeze({ name, id, ttl, patience, tokens: 0 })
    return this.upkeep
  }

  ref(): ClaimRef {
    return Object.freeze({ name: this.name, id: this.id })
  }

  /** `uncontended`: it is given up while it was good and nobody waited; see ReleaseRequest. */
  leaving(uncontended: boolean): ReleaseRequest {
    const request = { name: this.name, id: this.id, uncontended }
    return this.lane.session.trusted ? request : Object.freeze(request)
  }

  due(now: number): void {
    this.lane.session.upkeep.due(this, now)
  }

  // On the way.

  /** A request for it leaves. `era`: see `Session.era`. */
  asked(tokens: number, whenBusy: 'queue' | 'try', era: number): void {
    this.inFlight = true
    this.tokens = tokens
    this.whenBusy = whenBusy
    this.era = era
  }

  /** A question about it leaves: it asks for no more tokens than it was told to. */
  questioned(): void {
    this.inFlight = true
  }

  /** What was under way was answered, or will not be. */
  landed(): void {
    this.inFlight = false
  }

  /** The store may know more of it than we do. */
  doubt(): void {
    this.doubtful = true
  }

  /** The store has it in line. */
  queue(): void {
    this.state = 'queued'
    this.attempts = 0
  }

  /** Once more it was asked for in vain. */
  triedInVain(): void {
    this.attempts++
  }

  /** Somebody has it, who left this mark. Where marks change, sections are short. */
  refused(mark: string | undefined): void {
    if (this.mark !== undefined && this.mark !== mark) this.attempts = 0
    this.mark = mark
  }

  /** A waiter's question was not answered in time. */
  missed(): void {
    this.unheard++
  }

  /** One was, within the time that questions have at first. */
  heard(): void {
    this.unheard = 0
  }

  /** A message says that it was granted. */
  hearOfGrant(): void {
    this.told = true
  }

  /** Asked about, or not worth another question. */
  forgetWord(): void {
    this.told = false
  }

  /** A message says that it was taken away, before an answer said that it was granted. */
  revoke(): void {
    this.revoked = true
  }

  /** The next request asks for so many tokens. */
  want(tokens: number): void {
    this.tokens = tokens
  }

  /** Whoever made it takes the lease himself if the store answers at once, until `open`. */
  reserve(): void {
    this.reserved = true
  }

  open(): void {
    this.reserved = false
  }

  /** Those in line may have it too. */
  openToAll(): void {
    this.only = null
  }

  // Held.

  /** It is ours from here on, until `end` by our clocks. */
  hold(now: number, end: number, { token, count, contended }: Omit<Held, 'kind'>): void {
    this.state = 'held'
    this.attempts = 0
    this.tokens = 0
    this.validUntil = end
    // The message that a queue has formed may overtake the answer that says "held".
    this.contended ||= contended
    this.takeTokens(token, count)
    this.since = now
    if (this.lane.shared) this.heardAt = now
  }

  /** A renewal was answered. */
  extend(now: number, end: number, contended: boolean): void {
    this.validUntil = extended(this.validUntil, now, end)
    // Never back to false: the answer may be older than the message that a queue has formed.
    this.contended ||= contended
    if (this.lane.shared) this.heardAt = now
  }

  takeTokens(token: bigint, count: number): void {
    this.nextToken = token
    this.tokensLeft = count
  }

  /** A section begins. Its token. */
  begin(): bigint {
    this.tokensLeft--
    this.sections++
    this.unyielded++
    return this.nextToken++
  }

  /** The event loop had its chance. */
  yielded(): void {
    this.unyielded = 0
  }

  /** What was last heard of it is of this era. */
  heardIn(era: number): void {
    this.era = era
  }

  /** What was heard of it is not to be gone by any more. */
  distrust(): void {
    this.era = 0
    this.heardAt = -Infinity
  }

  /** A queue has formed at the store. */
  othersWait(): void {
    this.contended = true
  }

  /** Whether there is a queue is to be asked anew. */
  forgetOthers(): void {
    this.contended = false
  }

  /** There is nothing to hand on any more: as if others had waited for a whole turn. */
  endTurn(): void {
    this.contended = true
    this.since = -Infinity
  }

  /** A writer's, that goes on as a reader's. */
  moveTo(lane: Lane, lease: ClaimLease): void {
    this.lane = lane
    if (!lane.shared) return
    this.leases = new Set([lease])
    this.lease = null
  }

  /** Released, lost or abandoned. */
  end(): void {
    this.state = 'gone'
    this.cancel()
  }

  /** Those that use it are asked to come to an end. They still have it. */
  warn(reason: Error): void {
    for (const lease of this.leases === null ? [this.lease] : [...this.leases]) lease?.warn(reason)
  }

  addLease(lease: ClaimLease): void {
    this.users++
    if (!this.lane.shared) this.lease = lease
    else if (this.leases === null) this.leases = new Set([lease])
    else this.leases.add(lease)
  }

  dropLease(lease: ClaimLease): void {
    this.users--
    if (this.lease === lease) this.lease = null
    else this.leases?.delete(lease)
  }
}
