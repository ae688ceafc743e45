import { emptyQueue, isIdle, isSpent, step, view } from '../../core/claim-queue.ts'
import type { Instant, Outcome, QueueCommand, QueueState } from '../../core/claim-queue.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
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
  readonly now?: () => Instant
}

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

const { timeOrigin } = performance
const systemNow = (): Instant => {
  const ms = performance.now()
  return { ms, micros: Math.floor((timeOrigin + ms) * 1000) }
}

const SWEEP_AT = 1000

/** The claim queue of core, one per name, in this process. */
class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly capabilities: Capabilities = capabilities
  private readonly queues = new Map<string, QueueState>()
  private readonly listeners = new Map<string, StoreListener>()
  private readonly now: () => Instant
  private readonly reachable = (session: string): boolean => this.listeners.has(session)
  /** The name that fell idle last. Its queue is kept: it is likely to be the next one needed. */
  private idleName: string | undefined
  /** With so many names, those are looked for whose holders never came back. */
  private sweepAt = SWEEP_AT
  /** The highest token of any name that was forgotten: tokens grow also for a name that comes back. */
  private fence = 0

  constructor({ now = systemNow }: MemoryStoreOptions) {
    this.now = now
  }

  claim(request: ClaimRequest): ClaimAnswer {
    return this.run(request.name, { kind: 'claim', request }).answer
  }

  renew(requests: readonly RenewRequest[]): readonly RenewAnswer[] {
    const now = this.now()
    return requests.map((request) => this.run(request.name, { kind: 'renew', request }, now).answer)
  }

  release(claim: ClaimRef, next: ClaimRequest | undefined): ReleaseResult {
    return this.run(claim.name, { kind: 'release', claim, next }).answer
  }

  withdraw(claim: ClaimRef): ReleaseAnswer {
    return this.run(claim.name, { kind: 'withdraw', claim }).answer
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
    const names: string[] = []
    for (const name of [...this.queues.keys()].sort()) {
      if (!name.startsWith(prefix) || name <= cursor) continue
      const { holders, waiters } = view(this.queues.get(name) ?? emptyQueue(), name, now)
      if (holders.length + waiters.length === 0) continue
      if (names.length === limit) return { names, cursor: names.at(-1) ?? '' }
      names.push(name)
    }
    return { names }
  }

  close(): void {
    this.listeners.clear()
  }

  private run<C extends QueueCommand>(
    name: string,
    command: C,
    now: Instant = this.now(),
  ): Outcome<C['kind']> {
    let queue = this.queues.get(name)
    if (queue === undefined) {
      if (this.queues.size >= this.sweepAt) this.sweep(now)
      queue = emptyQueue(this.fence)
      this.queues.set(name, queue)
    }
    const outcome = step(queue, command, now, this.reachable)
    if (isIdle(queue)) this.rest(name)
    // Not from inside the command: whoever is told may send the next one at once.
    for (const { session, event } of outcome.notices)
      queueMicrotask(() => this.listeners.get(session)?.(event))
    return outcome
  }

  private sweep(now: Instant): void {
    for (const [name, queue] of this.queues) if (isSpent(queue, now)) this.forget(name, queue)
    this.sweepAt = Math.max(SWEEP_AT, this.queues.size * 2)
  }

  private forget(name: string, { fence }: QueueState): void {
    this.fence = Math.max(this.fence, fence)
    this.queues.delete(name)
  }

  private rest(name: string): void {
    const { idleName } = this
    if (name === idleName) return
    this.idleName = name
    if (idleName === undefined) return
    const queue = this.queues.get(idleName)
    if (queue !== undefined && isIdle(queue)) this.forget(idleName, queue)
  }
}

/** Locks between the tasks of one process. For tests, and for programs that never run twice. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return new MemoryStore(options)
}
