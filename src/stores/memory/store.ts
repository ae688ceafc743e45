import { checkFunction, checkOptions } from '../../core/arguments.ts'
import { printable } from '../../core/printing.ts'
import { emptyQueue, isIdle, isSpent, QueueState, step, view } from '../../core/claim-queue.ts'
import { trustedStores } from '../../core/trusted-stores.ts'
import type { Instant, Outcome, QueueCommand } from '../../core/claim-queue.ts'
import { takeUp } from '../../core/queue-record.ts'
import type { QueueRecord } from '../../core/queue-record.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Watch,
} from '../../core/contract.ts'

export interface MemoryStoreOptions {
  /** The clock; for tests. */
  readonly now?: (() => Instant) | undefined
}

const OPTIONS: readonly (keyof MemoryStoreOptions)[] = ['now']

const capabilities: Capabilities = {
  queue: true,
  shared: true,
  permits: true,
  fencing: 'monotonic',
  wakeups: 'push',
  reach: 'process',
  minTtl: 1,
  maxTtl: 2 ** 31 - 1,
  earlyExpiry: 0,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'n/a',
    storeRestart: 'n/a',
    failover: 'n/a',
    storeClockJump: 'holds',
  },
}

// Taken once: a user's fake timers must not move a lease, or keep a waiter asleep.
const { performance, queueMicrotask } = globalThis
const { timeOrigin } = performance
const now = performance.now.bind(performance)
const systemNow = (): Instant => {
  const ms = now()
  return { ms, micros: Math.floor((timeOrigin + ms) * 1000) }
}

const SWEEP_AT = 1000
/** Names that are sorted together for a list, beyond those of its page. */
const AT_ONCE = 500

/** The queue of one name. */
class NamedQueue extends QueueState {
  /** Empty once the queue is forgotten. */
  name: string
  /**
   * The one that was renewed after it last time. A watchdog renews its claims in the same order again and again, and
   * with a hundred thousand of them a look into the map costs more than all else about a renewal.
   */
  successor: NamedQueue | null = null

  constructor(name: string, fence: number) {
    super(fence)
    this.name = name
  }
}

/** The claim queue of core, one per name, in this process. */
export class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly capabilities: Capabilities = capabilities
  private readonly queues = new Map<string, NamedQueue>()
  private readonly listeners = new Map<string, StoreListener>()
  private readonly now: () => Instant
  private readonly reachable = (session: string): boolean => this.listeners.has(session)
  /** The one that fell idle last. It is kept: it is likely to be the next one needed. */
  private idle: NamedQueue | undefined
  /** With so many names, those are looked for whose holders never came back. */
  private sweepAt = SWEEP_AT
  /** The highest token of any name that was forgotten: tokens grow also for a name that comes back. */
  private fence = 0

  constructor({ now = systemNow }: MemoryStoreOptions) {
    this.now = now
    trustedStores.add(this)
  }

  claim(request: ClaimRequest): ClaimAnswer {
    const now = this.now()
    return this.run(this.queueOf(request.name, now), { kind: 'claim', request }, now).answer
  }

  renew(requests: readonly RenewRequest[]): readonly RenewAnswer[] {
    const now = this.now()
    let before: NamedQueue | null = null
    return requests.map((request) => {
      const { name } = request
      const guess: NamedQueue | null = before === null ? null : before.successor
      const queue = guess !== null && guess.name === name ? guess : this.queueOf(name, now)
      if (before !== null && guess !== queue) before.successor = queue
      before = queue
      return this.run(queue, { kind: 'renew', request }, now).answer
    })
  }

  release(claim: ClaimRef, next: ClaimRequest | undefined): ReleaseResult {
    const now = this.now()
    return this.run(this.queueOf(claim.name, now), { kind: 'release', claim, next }, now).answer
  }

  withdraw(claim: ClaimRef): ReleaseAnswer {
    const now = this.now()
    return this.run(this.queueOf(claim.name, now), { kind: 'withdraw', claim }, now).answer
  }

  downgrade(claim: ClaimRef): DowngradeAnswer {
    const now = this.now()
    return this.run(this.queueOf(claim.name, now), { kind: 'downgrade', claim }, now).answer
  }

  watch(session: string, listener: StoreListener): Watch {
    this.listeners.set(session, listener)
    return { kind: 'watching', stop: () => void this.listeners.delete(session) }
  }

  inspect(name: string): NameInfo {
    return view(this.queues.get(name) ?? emptyQueue(), name, this.now())
  }

  list({ prefix = '', limit = 100, cursor = '' }: ListQuery): ListPage {
    const now = this.now()
    // The first of them in order, and one more. To sort two hundred thousand for a page takes a tenth of a second; to put each
    // where it belongs takes as long when they were taken in the other direction.
    const most = limit + 1
    const atOnce = most + Math.max(most, AT_ONCE)
    let first: string[] = []
    let last: string | null = null
    for (const [name, queue] of this.queues) {
      if (name <= cursor || (last !== null && name > last)) continue
      if (!name.startsWith(prefix) || !isInUse(queue, now)) continue
      first.push(name)
      if (first.length < atOnce) continue
      first = first.sort(inOrder).slice(0, most)
      last = first.at(-1) ?? null
    }
    first.sort(inOrder)
    if (first.length <= limit) return { names: first }
    const names = first.slice(0, limit)
    return { names, cursor: names.at(-1) ?? '' }
  }

  close(): void {
    this.listeners.clear()
  }

  /** When a held claim ends unless it is renewed, on the store's clock. 0 if it is not held. */
  endOf({ name, id }: ClaimRef): number {
    return this.queues.get(name)?.holders.get(id)?.expiresAt ?? 0
  }

  /** When the last of the leases ends, on the store's clock. 0 if there is none. */
  furthestEnd(): number {
    let furthest = 0
    for (const { holders } of this.queues.values())
      for (const { expiresAt } of holders.values()) if (expiresAt > furthest) furthest = expiresAt
    return furthest
  }

  /**
   * Looks at every name where something has run out: a name that nobody asks about again must not stay for ever, and
   * whoever waits for it is granted at once.
   */
  expire(): void {
    const now = this.now()
    for (const queue of this.queues.values()) this.expireOne(queue, now)
  }

  /** All that is held, waited for or remembered, name by name. To be looked at and not changed. Tokens of other names are not in it. */
  *states(): Iterable<readonly [string, Readonly<QueueState>]> {
    this.sweep(this.now())
    yield* this.queues
  }

  /** The same, put into a store that is new. */
  takeUp(name: string, record: QueueRecord): void {
    const queue = new NamedQueue(name, this.fence)
    takeUp(queue, record)
    this.queues.set(name, queue)
  }

  private queueOf(name: string, now: Instant): NamedQueue {
    const known = this.queues.get(name)
    if (known !== undefined) return known
    if (this.queues.size >= this.sweepAt) this.sweep(now)
    const queue = new NamedQueue(name, this.fence)
    this.queues.set(name, queue)
    return queue
  }

  private run<C extends QueueCommand>(queue: NamedQueue, command: C, now: Instant): Outcome<C['kind']> {
    const outcome = step(queue, command, now, this.reachable)
    if (isIdle(queue)) this.rest(queue)
    // Not from inside the command: whoever is told may send the next one at once.
    for (const { session, event } of outcome.notices)
      queueMicrotask(() => this.listeners.get(session)?.(event))
    return outcome
  }

  private expireOne(queue: NamedQueue, now: Instant): void {
    const { name, nextExpiry, waiters, withdrawn } = queue
    let due = nextExpiry <= now.ms
    if (!due && withdrawn.size > 0) {
      const [oldest = Infinity] = withdrawn.values()
      due = oldest <= now.ms
    }
    // A release of what is not there any more changes nothing, and makes the queue look at itself.
    if (due) this.run(queue, { kind: 'release', claim: { name, id: '' } }, now)
    if (waiters.size === 0) return
    for (const { id, keptUntil } of waiters.values())
      if (keptUntil <= now.ms) this.run(queue, { kind: 'release', claim: { name, id } }, now)
  }

  private sweep(now: Instant): void {
    for (const queue of this.queues.values()) if (isSpent(queue, now)) this.forget(queue)
    this.sweepAt = Math.max(SWEEP_AT, this.queues.size * 2)
  }

  private forget(queue: NamedQueue): void {
    this.fence = Math.max(this.fence, queue.fence)
    this.queues.delete(queue.name)
    // Who still points here must not take it for the name's queue, nor keep others in memory by it.
    queue.name = ''
    queue.successor = null
  }

  private rest(queue: NamedQueue): void {
    const { idle } = this
    if (queue === idle) return
    this.idle = queue
    if (idle !== undefined && isIdle(idle)) this.forget(idle)
  }
}

/** Whether `inspect` shows anybody. */
function isInUse({ holders, waiters }: QueueState, { ms }: Instant): boolean {
  for (const { expiresAt } of holders.values()) if (expiresAt > ms) return true
  for (const { keptUntil } of waiters.values()) if (keptUntil > ms) return true
  return false
}

/** By code units, as `<` compares. */
const inOrder = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

/** Locks between the tasks of one process. For tests, and for programs that never run twice. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions(options, OPTIONS, 'now')
  checkFunction('now', options.now)
  return new MemoryStore(options)
}

// Not its client, its password or the ids of claims.
printable(MemoryStore, 'Store', ({ kind }) => ({ kind }))
