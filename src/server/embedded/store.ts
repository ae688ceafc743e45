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
import { sessionOf } from '../../core/claim-queue.ts'
import { MemoryStore } from '../../stores/memory/store.ts'
import type { ClaimsFile } from './claims-file.ts'
import type { Clocks } from './clocks.ts'
import type { Horizon } from './horizon.ts'
import { load, save } from './saved-claims.ts'
import type { FormerName, Maker, MakerOf } from './saved-claims.ts'

/** How often claims that have run out are taken away. */
const SWEEP_MS = 500
/** How long a place in line is kept for a session of the former run that has not come back: clients try every two seconds. */
const COME_BACK_MS = 5000

/** The claims of the former run. */
export interface Former {
  readonly states: ReturnType<MemoryStore['states']>
  readonly makerOf: MakerOf
}

/** What a server remembers beyond its life. */
export interface Memory {
  readonly horizon: Horizon
  readonly claims: ClaimsFile
  /** Told if the claims cannot be written down. */
  readonly onFailure?: (failure: unknown) => void
}

/**
 * The memory store with a memory of what it promised: no grant leaves it before the horizon on disk covers it. After a
 * planned stop the next run goes on with its claims. Without a horizon it is the memory store, swept.
 */
export class EmbeddedStore implements Store {
  readonly kind = 'memory'
  readonly capabilities: Capabilities
  /** The claims of the former run, if it ended as planned. For whoever needs them at the start, who forgets them then. */
  former: Former | null
  /** Milliseconds, at the start, until leases of a former run have ended of which nothing else is known. */
  readonly startsIn: number
  private readonly memory: MemoryStore
  private readonly horizon: Horizon | null
  private readonly file: ClaimsFile | null
  private readonly onFailure: (failure: unknown) => void
  private readonly clocks: Clocks
  private readonly sweeper: NodeJS.Timeout
  /** Sessions of the former run that wait and have not come back yet. */
  private readonly awaited = new Map<string, Watch>()
  private awaiting: NodeJS.Timeout | undefined

  constructor(memory: Memory | null, clocks: Clocks) {
    this.horizon = memory?.horizon ?? null
    this.file = memory?.claims ?? null
    this.onFailure = memory?.onFailure ?? (() => undefined)
    this.clocks = clocks
    const names = memory === null ? null : formerOf(memory, clocks)
    const makers = new Map<string, Maker>()
    this.memory = this.newMemory()
    for (const { name, record, makers: some } of names ?? []) {
      this.memory.takeUp(name, record)
      for (const [id, maker] of some) makers.set(id, maker)
    }
    // What could not be taken from whoever comes next must not be used, and is waited for.
    const taken = names !== null && this.horizon?.takeUp(this.memory.furthestEnd()) === true
    this.startsIn = taken ? 0 : (this.horizon?.pastEndsIn ?? 0)
    if (names !== null && !taken) this.memory = this.newMemory()
    this.former = taken ? { states: this.memory.states(), makerOf: (id) => makers.get(id) } : null
    this.file?.remove()
    const { capabilities } = this.memory
    const storeRestart = memory === null ? 'breaks' : 'holds'
    this.capabilities = {
      ...capabilities,
      reach: 'network',
      waitsAfterCrash: memory !== null,
      guarantees: { ...capabilities.guarantees, partition: 'holds', storeRestart },
    }
    if (taken) this.await()
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS)
    this.sweeper.unref()
  }

  /** Whether the next run will know the claims of this one. */
  get remembers(): boolean {
    return this.horizon?.knowsAll === true
  }

  claim(request: ClaimRequest, _timeout: number): MaybePromise<ClaimAnswer> {
    return this.promised(request, this.memory.claim(request))
  }

  renew(requests: readonly RenewRequest[], _timeout: number): MaybePromise<readonly RenewAnswer[]> {
    const answers = this.memory.renew(requests)
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

  release(claim: ClaimRef, next: ClaimRequest | undefined, _timeout: number): MaybePromise<ReleaseResult> {
    const result = this.memory.release(claim, next)
    if (next === undefined || result.next === undefined) return result
    const answer = this.promised(next, result.next)
    if (!(answer instanceof Promise)) return result
    return answer.then((position) => ({ released: result.released, next: position }))
  }

  withdraw(claim: ClaimRef, _timeout: number): ReleaseAnswer {
    return this.memory.withdraw(claim)
  }

  /** Promises nothing new: the lease ends when it would have ended. */
  downgrade(claim: ClaimRef, _timeout: number): DowngradeAnswer {
    return this.memory.downgrade(claim)
  }

  watch(session: string, listener: StoreListener, _timeout: number): Watch {
    this.awaited.delete(session)
    return this.memory.watch(session, (event) => this.tell(listener, event))
  }

  inspect(name: string, _timeout: number): NameInfo {
    return this.memory.inspect(name)
  }

  list(query: ListQuery, _timeout: number): ListPage {
    return this.memory.list(query)
  }

  /** Whether anything could be promised is told to whoever hears of the horizon's writes. */
  async check(): Promise<void> {
    await this.horizon?.check()
  }

  /**
   * Everything that is held and waited for is written down for the next run, which goes on with it. Should that fail, the
   * horizon is brought back to the leases that are left, so that the next run waits for those and no longer.
   */
  async close(makerOf: MakerOf = () => undefined): Promise<void> {
    clearInterval(this.sweeper)
    clearTimeout(this.awaiting)
    const { horizon, file, memory } = this
    memory.close()
    if (horizon === null || file === null) return
    const end = memory.furthestEnd()
    // In this order: the claims count from the moment in which the horizon names them.
    const digest = horizon.knowsAll ? await this.writeClaims(file, makerOf) : undefined
    const settled = await horizon.settleAt(end, digest)
    if (digest === undefined || !settled) file.remove()
  }

  private async writeClaims(file: ClaimsFile, makerOf: MakerOf): Promise<string | undefined> {
    try {
      return await file.write(save(this.memory.states(), this.clocks, makerOf))
    } catch (failure) {
      this.onFailure(failure)
      return undefined
    }
  }

  private newMemory(): MemoryStore {
    const { clocks } = this
    const floor = this.horizon?.tokenFloor ?? 0
    return new MemoryStore({
      now: () => ({ ms: clocks.mono(), micros: Math.max(Math.floor(clocks.wall() * 1000), floor + 1) }),
    })
  }

  /**
   * Whoever waited keeps its place until it has come back: without a listener it would be passed over. What it is granted
   * meanwhile it learns when it asks, as after any message that got lost.
   */
  private await(): void {
    for (const [, { waiters }] of this.memory.states()) {
      for (const { id } of waiters.values()) {
        const session = sessionOf(id)
        if (!this.awaited.has(session))
          this.awaited.set(
            session,
            this.watch(session, () => undefined, 0),
          )
      }
    }
    if (this.awaited.size === 0) return
    this.awaiting = setTimeout(() => {
      for (const watch of this.awaited.values()) watch.stop()
      this.awaited.clear()
    }, COME_BACK_MS)
    this.awaiting.unref()
  }

  /** Notes what an answer promises, and holds it back until the disk has it. */
  private promised<A extends ClaimAnswer | RenewAnswer>(
    request: ClaimRequest | RenewRequest,
    answer: A,
  ): MaybePromise<A> {
    switch (answer.kind) {
      case 'held':
      case 'renewed': {
        const end = this.clocks.mono() + request.ttl
        const token = answer.kind === 'held' ? Number(answer.token) + answer.count : 0
        const pending = this.horizon?.cover({ end, token }) ?? null
        return pending === null ? answer : pending.then(() => answer, notWritten<A>)
      }
      default:
        return answer
    }
  }

  private tell(listener: StoreListener, event: StoreEvent): void {
    if (event.kind !== 'granted') return listener(event)
    const pending =
      this.horizon?.cover({ end: this.memory.endOf(event), token: Number(event.token) + event.count }) ?? null
    if (pending === null) return listener(event)
    // A grant that cannot be promised is not told; its waiter asks, and is answered then.
    pending.then(
      () => listener(event),
      () => undefined,
    )
  }

  private sweep(): void {
    this.memory.expire()
    const now = this.clocks.mono()
    this.horizon?.lower(Math.max(now, this.memory.furthestEnd()), now)
  }
}

function formerOf({ horizon, claims }: Memory, clocks: Clocks): Iterable<FormerName> | null {
  const lines = horizon.claims === null ? null : claims.read(horizon.claims)
  return lines === null ? null : load(lines, clocks)
}

function notWritten<A extends ClaimAnswer | RenewAnswer>(): A {
  return { kind: 'unknown', cause: new Error('The lock server could not write its state file') } as
    | ClaimAnswer
    | RenewAnswer as A
}
