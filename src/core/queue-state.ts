import type { ClaimInfo, NameInfo } from './contract.ts'
import { OneOrMany } from './one-or-many.ts'

/** What a store knows of one name, and how it looks. What changes it is in claim-queue.ts. */

/** The store's clock at the moment of a command. */
export interface Instant {
  /** Milliseconds on the clock that leases are measured by. */
  readonly ms: number
  /** Microseconds of wall time: the floor of the next token, so that a lost counter never repeats one. */
  readonly micros: number
}

export interface Holder {
  readonly id: string
  readonly owner: string
  weight: number
  token: number
  count: number
  expiresAt: number
}

export interface Waiter {
  readonly id: string
  readonly owner: string
  readonly weight: number
  readonly tokens: number
  /** As the waiter said last: what it counts on if it is granted now. */
  ttl: number
  patience: number
  /** A waiter that says nothing until then is gone. */
  keptUntil: number
}

// Never written to: shared by all queues that have none of their own.
export const NOBODY: Map<string, Waiter> = new Map()
export const NONE: Map<string, number> = new Map()

/** What is known of one name. A class, for V8 lays out the fields of a literal that is spread or extended badly. */
export class QueueState {
  /** The last token given. A double holds microseconds exactly until the year 2255. */
  fence: number
  capacity = 0
  used = 0
  /** No holder's lease ends before this: lets most commands skip the search for expired ones. */
  nextExpiry: number = Infinity
  readonly holders: OneOrMany<Holder> = new OneOrMany()
  /** In order of arrival. Made when the first one comes: most names never have a queue. */
  waiters: Map<string, Waiter> = NOBODY
  /** Withdrawn ids, and until when a late copy of their request is refused. Made like the waiters. */
  withdrawn: Map<string, number> = NONE

  constructor(fence = 0) {
    this.fence = fence
  }
}

export function emptyQueue(fence = 0): QueueState {
  return new QueueState(fence)
}

/** Nothing is held, waited for or remembered but the fence. */
export function isIdle(state: QueueState): boolean {
  return state.holders.size === 0 && state.waiters.size === 0 && state.withdrawn.size === 0
}

/** Everything about it has run out: it may be forgotten, but for its fence. */
export function isSpent({ holders, waiters, withdrawn }: QueueState, { ms }: Instant): boolean {
  for (const { expiresAt } of holders.values()) if (expiresAt > ms) return false
  for (const { keptUntil } of waiters.values()) if (keptUntil > ms) return false
  for (const until of withdrawn.values()) if (until > ms) return false
  return true
}

/** What `inspect` shows at a moment, without the claims that have run out by then. */
export function view(state: QueueState, name: string, now: Instant): NameInfo {
  const holders: ClaimInfo[] = []
  for (const { id, owner, weight, token, expiresAt } of state.holders.values()) {
    if (expiresAt > now.ms)
      holders.push({ id, owner, weight, token: BigInt(token), expiresIn: expiresAt - now.ms })
  }
  const waiters: ClaimInfo[] = []
  for (const { id, owner, weight, keptUntil } of state.waiters.values()) {
    if (keptUntil > now.ms) waiters.push({ id, owner, weight, expiresIn: keptUntil - now.ms })
  }
  return { name, capacity: state.capacity, holders, waiters }
}
