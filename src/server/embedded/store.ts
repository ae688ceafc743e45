import type {
  Capabilities,
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
  StoreEvent,
  StoreListener,
  Watch,
} from '../../core/contract.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import type { Clocks } from './clocks.ts'
import type { Horizon } from './horizon.ts'
import { Ledger } from './ledger.ts'

/** How often claims that have run out are taken away: a name that nobody asks about again must not stay for ever. */
const SWEEP_MS = 500

/**
 * The memory store with a memory of what it promised: no grant leaves it before the horizon on disk covers it.
 * Without a horizon it is the memory store, swept.
 */
export class EmbeddedStore implements Store {
  readonly kind = 'memory'
  readonly capabilities: Capabilities
  private readonly memory: Store
  private readonly horizon: Horizon | null
  private readonly clocks: Clocks
  private readonly ledger: Ledger
  private readonly sweeper: NodeJS.Timeout

  constructor(horizon: Horizon | null, clocks: Clocks) {
    const floor = horizon?.tokenFloor ?? 0
    this.horizon = horizon
    this.clocks = clocks
    this.memory = memoryStore({
      now: () => ({ ms: clocks.mono(), micros: Math.max(Math.floor(clocks.wall() * 1000), floor + 1) }),
    })
    const { capabilities } = this.memory
    const storeRestart = horizon === null ? 'breaks' : 'holds'
    this.capabilities = {
      ...capabilities,
      reach: 'network',
      guarantees: { ...capabilities.guarantees, partition: 'holds', storeRestart },
    }
    this.ledger = new Ledger(this.memory)
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS)
    this.sweeper.unref()
  }

  claim(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    const answer = this.memory.claim(request, timeout) as ClaimAnswer
    return this.promised(request, answer)
  }

  renew(requests: readonly RenewRequest[], timeout: number): MaybePromise<readonly RenewAnswer[]> {
    const answers = this.memory.renew(requests, timeout) as readonly RenewAnswer[]
    let late = false
    const checked = answers.map((answer, index) => {
      const request = requests[index]
      const one = request === undefined ? answer : this.promised(request, answer)
      late ||= one instanceof Promise
      return one
    })
    return late
      ? Promise.all(checked.map((one) => Promise.resolve(one)))
      : (checked as readonly RenewAnswer[])
  }

  release(claim: ClaimRef, next: ClaimRequest | undefined, timeout: number): MaybePromise<ReleaseResult> {
    const result = this.memory.release(claim, next, timeout) as ReleaseResult
    this.ledger.delete(claim)
    if (next === undefined || result.next === undefined) return result
    const answer = this.promised(next, result.next)
    if (!(answer instanceof Promise)) return result
    return answer.then((position) => ({ released: result.released, next: position }))
  }

  withdraw(claim: ClaimRef, timeout: number): ReleaseAnswer {
    const answer = this.memory.withdraw(claim, timeout) as ReleaseAnswer
    this.ledger.delete(claim)
    this.ledger.withdrawn(claim, this.clocks.mono())
    return answer
  }

  /** Promises nothing new: the lease ends when it would have ended. */
  downgrade(claim: ClaimRef, timeout: number): DowngradeAnswer {
    return this.memory.downgrade?.(claim, timeout) as DowngradeAnswer
  }

  watch(session: string, listener: StoreListener, timeout: number): MaybePromise<Watch> {
    return this.memory.watch(session, (event) => this.tell(listener, event), timeout) as Watch
  }

  inspect(name: string, timeout: number): NameInfo {
    return this.memory.inspect(name, timeout) as NameInfo
  }

  list(query: ListQuery, timeout: number): ListPage {
    return this.memory.list(query, timeout) as ListPage
  }

  /** Whether anything could be promised is told to whoever hears of the horizon's writes. */
  async check(): Promise<void> {
    await this.horizon?.check()
  }

  /** The horizon is brought back to the leases that are left, so that the next start waits for those and no longer. */
  async close(): Promise<void> {
    clearInterval(this.sweeper)
    await this.memory.close()
    await this.horizon?.settleAt(this.ledger.furthestEnd())
  }

  /** Notes what an answer promises, and holds it back until the disk has it. */
  private promised<A extends ClaimAnswer | RenewAnswer>(
    request: ClaimRequest | RenewRequest,
    answer: A,
  ): MaybePromise<A> {
    switch (answer.kind) {
      case 'queued':
        this.ledger.queued(request, this.clocks.mono())
        return answer
      case 'held':
      case 'renewed': {
        const end = this.clocks.mono() + request.ttl
        const token = answer.kind === 'held' ? Number(answer.token) + answer.count : 0
        this.ledger.held(request, end)
        const pending = this.horizon?.cover({ end, token }) ?? null
        return pending === null ? answer : pending.then(() => answer, notWritten<A>)
      }
      case 'lost':
        this.ledger.delete(request)
        return answer
      default:
        return answer
    }
  }

  private tell(listener: StoreListener, event: StoreEvent): void {
    if (event.kind !== 'granted') return listener(event)
    const end = this.clocks.mono() + this.ledger.pickUpTime(event.id)
    this.ledger.held(event, end)
    const pending = this.horizon?.cover({ end, token: Number(event.token) + event.count }) ?? null
    if (pending === null) return listener(event)
    // A grant that cannot be promised is not told; its waiter asks, and is answered then.
    pending.then(
      () => listener(event),
      () => undefined,
    )
  }

  private sweep(): void {
    const now = this.clocks.mono()
    this.ledger.sweep(now)
    this.horizon?.lower(Math.max(now, this.ledger.furthestEnd()), now)
  }
}

function notWritten<A extends ClaimAnswer | RenewAnswer>(): A {
  return { kind: 'unknown', cause: new Error('The lock server could not write its state file') } as
    | ClaimAnswer
    | RenewAnswer as A
}
