import type { ClaimRef, ClaimRequest, ReleaseRequest, RenewRequest } from '../core/contract.ts'
import { pickUpTime } from '../core/validity.ts'
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

/** One claim of this process at the store, from the first request to the last. Serves the tasks of its lane. */
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
  only: Task | null = null
  /** Whoever made it takes the lease himself if the store answers at once. */
  reserved = false
  /** A message said that it was granted, and no request has left since. */
  told = false
  /** A message said that it was taken away by force, before an answer said that it was granted. */
  revoked = false

  constructor(lane: Lane, id: string) {
    super()
    this.lane = lane
    this.id = id
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

  /** `calm`: it is given up while it was good and nobody waited; see ReleaseRequest. */
  leaving(calm: boolean): ReleaseRequest {
    const request = { name: this.name, id: this.id, calm }
    return this.lane.session.trusted ? request : Object.freeze(request)
  }

  due(now: number): void {
    this.lane.session.upkeep.due(this, now)
  }

  takeTokens(token: bigint, count: number): void {
    this.nextToken = token
    this.tokensLeft = count
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
