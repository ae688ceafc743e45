import { getHeapStatistics } from 'node:v8'

import { sessionOf } from '../core/claim-queue.ts'
import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  StoreEvent,
} from '../core/contract.ts'
import { pickUpTime } from '../core/validity.ts'
import type { Caller } from './caller.ts'
import { Metrics } from './metrics.ts'
import type { Counter, Histogram } from './metrics.ts'
import type { Principal } from './rights.ts'

interface Entry {
  readonly name: string
  readonly id: string
  readonly owner: string
  readonly caller: Caller
  weight: number
  readonly capacity: number
  state: 'waiting' | 'held'
  /** When it began to wait, or was granted. */
  since: number
  /** Gone by then if nothing is heard of it. */
  until: number
  /** For how long it is granted at first, when its turn comes. */
  pickUp: number
  /** What it was last taken or renewed for. An earlier build did not write it down. */
  ttl: number | undefined
  token: bigint
}

/** A lease that is gone. */
export type Lost = Pick<Entry, 'caller' | 'name' | 'id' | 'token'>

export type FormerClaim = Omit<Entry, 'caller' | 'since'>

/** What happens to the locks, for whoever watches. */
export interface Activity {
  readonly kind: 'queued' | 'held' | 'released' | 'lost' | 'revoked'
  readonly name: string
  readonly owner: string
  readonly token?: string
}

const SWEEP_MS = 1000
/** Leases of other servers that are remembered. Who is forgotten has a second line in the audit log. */
const MOST_VISITORS = 50_000
/** Bytes of a claim besides its texts, here and in the store. */
const OVERHEAD = 1024
/** Of the heap, for all claims; and of that, for those of one principal. */
const SHARE = { all: 1 / 2, each: 3 / 4 }

/**
 * The claims that came through this server, while they last. The store knows the truth; this is what the limits, the
 * numbers and the event stream are made of.
 */
export class ClaimRegistry {
  readonly metrics: Metrics
  /** Told of leases that ended by themselves, or were gone when somebody asked. */
  onLost: (lost: Lost) => void = () => undefined
  private readonly entries = new Map<string, Entry>()
  private readonly waitersByName = new Map<string, number>()
  private readonly waitersByPrincipal = new Map<Principal, number>()
  private readonly leasesByPrincipal = new Map<Principal, number>()
  private readonly sessions = new Map<string, { owner: string; claims: number }>()
  /** Leases that were taken at another server of this store and renewed at this one, and when they end. */
  private readonly visitors = new Map<string, number>()
  private readonly listeners = new Set<(activity: Activity) => void>()
  private readonly now: () => number
  private readonly sweeper: NodeJS.Timeout
  private readonly claims: Counter
  private readonly renewals: Counter
  private readonly ends: Counter
  private readonly waits: Histogram
  private readonly holds: Histogram
  private waiting = 0
  /** About how many bytes all claims take, and those of each principal. */
  private readonly most: number
  private bytes = 0
  private readonly bytesByPrincipal = new Map<Principal, number>()

  constructor(
    store: string,
    now: () => number = () => performance.now(),
    heap: number = getHeapStatistics().heap_size_limit,
  ) {
    this.now = now
    this.most = heap * SHARE.all
    this.metrics = new Metrics({ store })
    this.claims = this.metrics.counter('holdfast_claims_total', 'Claims by what they were answered.')
    this.renewals = this.metrics.counter('holdfast_renewals_total', 'Renewals by what they were answered.')
    this.ends = this.metrics.counter(
      'holdfast_leases_ended_total',
      'Leases by how they ended: released, lost, revoked.',
    )
    this.waits = this.metrics.histogram('holdfast_wait_seconds', 'From the claim to the grant.')
    this.holds = this.metrics.histogram('holdfast_hold_seconds', 'From the grant to the end of the lease.')
    for (const end of ['released', 'lost', 'revoked']) this.ends.add('end', end, 0)
    this.metrics.gauge(
      'holdfast_held',
      'Leases that came through this server.',
      () => this.entries.size - this.waiting,
    )
    this.metrics.gauge('holdfast_waiting', 'Waiters that came through this server.', () => this.waiting)
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS)
    this.sweeper.unref()
  }

  listen(listener: (activity: Activity) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  waitersFor(name: string): number {
    return this.waitersByName.get(name) ?? 0
  }

  waitersOf(principal: Principal): number {
    return this.waitersByPrincipal.get(principal) ?? 0
  }

  leasesOf(principal: Principal): number {
    return this.leasesByPrincipal.get(principal) ?? 0
  }

  /** There is no room for another claim: limits for each principal are numbers, and names may be long. */
  isFullFor(principal: Principal): boolean {
    return this.bytes >= this.most || (this.bytesByPrincipal.get(principal) ?? 0) >= this.most * SHARE.each
  }

  /** The name that a claim is for. */
  nameOf(id: string): string | undefined {
    return this.entries.get(id)?.name
  }

  /** Whether this is a claim for the same, or for nothing that is known. */
  agrees({ name, id, weight, capacity }: ClaimRequest): boolean {
    const entry = this.entries.get(id)
    if (entry === undefined) return true
    return entry.name === name && entry.weight === weight && entry.capacity === capacity
  }

  knows(claim: ClaimRef): boolean {
    return this.entryOf(claim) !== undefined
  }

  /** Whether it is a lease since before, not one that was granted just now. */
  hasHeld(claim: ClaimRef, token: bigint | undefined): boolean {
    const entry = this.entryOf(claim)
    return entry?.state === 'held' && entry.token === token
  }

  /** Whether a lease was renewed here before, though it was taken elsewhere. */
  isVisitor({ id }: ClaimRef): boolean {
    return this.visitors.has(id)
  }

  /** What a lease was last taken or renewed for, as far as that happened here. */
  ttlOf(claim: ClaimRef): number | undefined {
    return this.entryOf(claim)?.ttl
  }

  /** The name of the principal who has claims in this session. */
  ownerOf(session: string): string | undefined {
    return this.sessions.get(session)?.owner
  }

  /** From now on the session is another principal's. Its claims stay in the book as they were made. */
  passOn(session: string, owner: string): void {
    const known = this.sessions.get(session)
    if (known !== undefined) known.owner = owner
  }

  /** The name of the principal whose claim it is. */
  whose(id: string): string | undefined {
    return this.entries.get(id)?.caller.principal.name
  }

  /** What the next run has to know of it. */
  readonly makerOf = (id: string): { who: string; ttl: number | undefined } | undefined => {
    const entry = this.entries.get(id)
    return entry && { who: entry.caller.principal.name, ttl: entry.ttl }
  }

  /** Who made a claim that still waits. */
  waiterOf(claim: ClaimRef): Caller | null {
    const entry = this.entryOf(claim)
    return entry?.state === 'waiting' ? entry.caller : null
  }

  madeBy(claim: ClaimRef, caller: Caller): boolean {
    return this.entryOf(claim)?.caller === caller
  }

  /** A claim of the former run that goes on. It was counted and told of when it was made. */
  takeUp(caller: Caller, claim: FormerClaim): void {
    const entry: Entry = { ...claim, caller, since: this.now() }
    this.keep(entry)
    if (entry.state === 'waiting') this.countWaiter(entry, 1)
    else change(this.leasesByPrincipal, caller.principal, 1)
  }

  claimed(caller: Caller, request: ClaimRequest, answer: ClaimAnswer): void {
    this.claims.add('result', answer.kind)
    if (answer.kind !== 'held' && answer.kind !== 'queued') return
    const now = this.now()
    const known = this.entryOf(request)
    const entry = known ?? this.add(caller, request, now)
    wish(entry, request)
    if (answer.kind === 'held') return this.hold(entry, now, request.ttl, answer.token)
    entry.until = now + request.patience
    if (known === undefined) this.tell('queued', entry)
  }

  renewed(request: RenewRequest, answer: RenewAnswer): void {
    this.renewals.add('result', answer.kind)
    const entry = this.entryOf(request)
    const { ttl, patience } = request
    const now = this.now()
    if (entry === undefined) {
      if (answer.kind === 'held' || answer.kind === 'renewed') this.visits(request, ttl)
      else if (answer.kind === 'lost') this.visitors.delete(request.id)
      return
    }
    wish(entry, request)
    if (answer.kind === 'held' || answer.kind === 'renewed') {
      this.hold(entry, now, ttl, answer.kind === 'held' ? answer.token : entry.token)
    }
    if (answer.kind === 'queued') entry.until = now + patience
    if (answer.kind === 'lost') this.end(entry, 'lost')
  }

  told(event: StoreEvent): void {
    if (event.kind !== 'granted') return
    const entry = this.entryOf(event)
    const now = this.now()
    if (entry !== undefined) this.hold(entry, now, entry.pickUp, event.token)
  }

  /** A lease that was taken at another server is known here for so long. */
  visits({ id }: ClaimRef, ms: number): void {
    this.visitors.delete(id)
    this.visitors.set(id, this.now() + ms)
    if (this.visitors.size <= MOST_VISITORS) return
    for (const longest of this.visitors.keys()) {
      this.visitors.delete(longest)
      break
    }
  }

  /** A writer that has become a reader. */
  downgraded(claim: ClaimRef): void {
    const entry = this.entryOf(claim)
    if (entry !== undefined) entry.weight = 1
  }

  released(claim: ClaimRef, answer: ReleaseAnswer): void {
    if (answer.kind !== 'unknown') this.visitors.delete(claim.id)
    const entry = this.entryOf(claim)
    if (entry !== undefined && answer.kind !== 'unknown') {
      this.end(entry, answer.kind === 'released' ? 'released' : 'lost')
    }
  }

  revoked(claim: ClaimRef): void {
    const entry = this.entryOf(claim)
    if (entry !== undefined) this.end(entry, 'revoked')
  }

  close(): void {
    clearInterval(this.sweeper)
    this.listeners.clear()
  }

  /** What the store says about an id under another name is not about this claim. */
  private entryOf({ name, id }: ClaimRef): Entry | undefined {
    const entry = this.entries.get(id)
    return entry?.name === name ? entry : undefined
  }

  private add(caller: Caller, request: ClaimRequest, now: number): Entry {
    const { name, id, owner, weight, capacity, ttl } = request
    const entry: Entry = {
      name,
      id,
      owner,
      caller,
      weight,
      capacity,
      state: 'waiting',
      since: now,
      until: 0,
      pickUp: 0,
      ttl,
      token: 0n,
    }
    this.keep(entry)
    this.countWaiter(entry, 1)
    return entry
  }

  private keep(entry: Entry): void {
    this.entries.set(entry.id, entry)
    this.weigh(entry, 1)
    const session = sessionOf(entry.id)
    const known = this.sessions.get(session)
    if (known === undefined) this.sessions.set(session, { owner: entry.caller.principal.name, claims: 1 })
    else known.claims++
  }

  private hold(entry: Entry, now: number, lasts: number, token: bigint): void {
    entry.until = now + lasts
    entry.token = token
    if (entry.state === 'held') return
    this.countWaiter(entry, -1)
    this.waits.observe(now - entry.since)
    entry.state = 'held'
    entry.since = now
    change(this.leasesByPrincipal, entry.caller.principal, 1)
    this.tell('held', entry)
  }

  private end(entry: Entry, how: 'released' | 'lost' | 'revoked'): void {
    this.entries.delete(entry.id)
    this.weigh(entry, -1)
    const session = sessionOf(entry.id)
    const known = this.sessions.get(session)
    if (known !== undefined && --known.claims === 0) this.sessions.delete(session)
    if (entry.state === 'waiting') return this.countWaiter(entry, -1)
    change(this.leasesByPrincipal, entry.caller.principal, -1)
    this.ends.add('end', how)
    this.holds.observe(this.now() - entry.since)
    if (how === 'lost') this.onLost(entry)
    this.tell(how, entry)
  }

  private weigh({ name, id, owner, caller }: Entry, sign: 1 | -1): void {
    const bytes = sign * (OVERHEAD + 2 * (name.length + id.length + owner.length))
    this.bytes += bytes
    change(this.bytesByPrincipal, caller.principal, bytes)
  }

  private countWaiter({ name, caller }: Entry, by: 1 | -1): void {
    this.waiting += by
    change(this.waitersByName, name, by)
    change(this.waitersByPrincipal, caller.principal, by)
  }

  private tell(kind: Activity['kind'], { name, owner, token }: Entry): void {
    if (this.listeners.size === 0) return
    const activity = kind === 'queued' ? { kind, name, owner } : { kind, name, owner, token: String(token) }
    for (const listener of this.listeners) listener(activity)
  }

  private sweep(): void {
    const now = this.now()
    for (const entry of this.entries.values()) if (entry.until <= now) this.end(entry, 'lost')
    for (const [id, until] of this.visitors) if (until <= now) this.visitors.delete(id)
  }
}

/** For how long it is wanted, as it was last said. The store goes by that, too, also for who still waits. */
function wish(entry: Entry, request: Pick<ClaimRequest, 'ttl' | 'patience'>): void {
  entry.ttl = request.ttl
  entry.pickUp = pickUpTime(request)
}

function change<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
