import { sessionOf } from '../core/claim-queue.ts'
import type {
  Capabilities,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  ReleaseRequest,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreEvent,
  StoreListener,
  Unknown,
  Watch,
} from '../core/contract.ts'
import type { Env } from '../runtime/env.ts'
import type { MemoryStore } from '../stores/memory/store.ts'

/** What is wrong with the store, for one name or, without one, for all. */
export interface Fault {
  readonly kind: 'slow' | 'down'
  /** How late answers and messages are; Infinity: they never come. */
  readonly by: number
  readonly name: string | undefined
}

/** One program's connection to the memory store, which the test can make slow or cut. */
export class TestStore implements Store {
  readonly kind: string
  readonly capabilities: Capabilities
  private readonly memory: MemoryStore
  private readonly env: Env
  private readonly faults = new Set<Fault>()
  private readonly listeners = new Map<string, StoreListener>()
  /** What gives the answers that are late. */
  private readonly late = new Set<() => void>()

  constructor(kind: string, memory: MemoryStore, env: Env) {
    this.kind = kind
    this.capabilities = memory.capabilities
    this.memory = memory
    this.env = env
  }

  /** Returns what mends it. */
  fail(fault: Fault): () => void {
    this.faults.add(fault)
    return () => {
      if (this.faults.delete(fault)) this.mayHaveMissed()
    }
  }

  /** Also what is late comes now: at the end there may be nobody who moves the clock. */
  mend(): void {
    for (const give of this.late) give()
    if (this.faults.size === 0) return
    this.faults.clear()
    this.mayHaveMissed()
  }

  /** Takes a name from those who hold it by this connection, as `holdfast release` does. Says how many that were. */
  takeAway(name: string): number {
    const mine = this.memory.inspect(name).holders.filter(({ id }) => this.listeners.has(sessionOf(id)))
    for (const { id } of mine) {
      this.memory.withdraw({ name, id })
      this.listeners.get(sessionOf(id))?.({ kind: 'revoked', name, id })
    }
    return mine.length
  }

  claim(request: ClaimRequest, timeout: number): ReturnType<Store['claim']> {
    return this.answer(request.name, timeout, () => this.memory.claim(request))
  }

  /** One of the batch is enough to make all of it late; only those that are cut off do not arrive. */
  renew(requests: readonly RenewRequest[], timeout: number): MaybePromise<readonly RenewAnswer[]> {
    const late = Math.max(0, ...requests.map(({ name }) => this.lateness(name, 'slow')))
    return this.later<readonly RenewAnswer[]>(
      late,
      timeout,
      () =>
        requests.map((request) => {
          if (this.lateness(request.name, 'down') > 0) return noAnswer()
          return this.memory.renew([request])[0] ?? noAnswer()
        }),
      () => requests.map(noAnswer),
    )
  }

  release(
    claim: ReleaseRequest,
    next: ClaimRequest | undefined,
    timeout: number,
  ): ReturnType<Store['release']> {
    const nothing = (): { released: Unknown; next?: Unknown } => ({
      released: noAnswer(),
      ...(next !== undefined && { next: noAnswer() }),
    })
    if (this.lateness(claim.name, 'down') > 0) return nothing()
    return this.later(
      this.lateness(claim.name, 'slow'),
      timeout,
      () => this.memory.release(claim, next),
      nothing,
    )
  }

  withdraw(claim: ClaimRef, timeout: number): ReturnType<Store['withdraw']> {
    return this.answer(claim.name, timeout, () => this.memory.withdraw(claim))
  }

  downgrade(claim: ClaimRef, timeout: number): MaybePromise<DowngradeAnswer> {
    return this.answer(claim.name, timeout, () => this.memory.downgrade(claim))
  }

  watch(session: string, listener: StoreListener): Watch {
    this.listeners.set(session, listener)
    const watch = this.memory.watch(session, (event) => this.tell(listener, event))
    return {
      kind: 'watching',
      stop: () => {
        this.listeners.delete(session)
        watch.stop()
      },
    }
  }

  inspect(name: string, timeout: number): MaybePromise<NameInfo | Unknown> {
    return this.answer(name, timeout, () => this.memory.inspect(name))
  }

  list(query: ListQuery, timeout: number): MaybePromise<ListPage | Unknown> {
    return this.answer(undefined, timeout, () => this.memory.list(query))
  }

  close(): void {
    this.listeners.clear()
  }

  private lateness(name: string | undefined, kind: Fault['kind']): number {
    let late = 0
    for (const fault of this.faults) {
      if (fault.kind === kind && (fault.name === undefined || fault.name === name))
        late = Math.max(late, fault.by)
    }
    return late
  }

  private answer<T>(name: string | undefined, timeout: number, ask: () => T): MaybePromise<T | Unknown> {
    if (this.lateness(name, 'down') > 0) return noAnswer()
    return this.later<T | Unknown>(this.lateness(name, 'slow'), timeout, ask, noAnswer)
  }

  /** The store has done it, and says so late: after the time that the caller gives it, nobody knows. */
  private later<T>(late: number, timeout: number, ask: () => T, nothing: () => T): MaybePromise<T> {
    const answer = ask()
    if (late === 0) return answer
    return new Promise((resolve) => {
      const given = late < timeout ? answer : nothing()
      const give = (): void => {
        timer.cancel()
        this.late.delete(give)
        resolve(given)
      }
      const timer = this.env.setTimer(give, Math.min(late, timeout), false)
      this.late.add(give)
    })
  }

  private tell(listener: StoreListener, event: StoreEvent): void {
    const name = event.kind === 'gap' ? undefined : event.name
    if (this.lateness(name, 'down') > 0) return
    const late = this.lateness(name, 'slow')
    if (late === 0) listener(event)
    else this.env.setTimer(() => listener(event), late, true)
  }

  private mayHaveMissed(): void {
    for (const listener of this.listeners.values()) listener({ kind: 'gap' })
  }
}

function noAnswer(): Unknown {
  return { kind: 'unknown', cause: new Error('the test has cut the store off, or made it too slow') }
}
