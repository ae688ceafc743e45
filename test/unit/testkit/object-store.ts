import { fromRecord, isIdle, step, toRecord, view } from 'holdfast/store'
import type {
  AnswerOf,
  Capabilities,
  ClaimRef,
  ClaimRequest,
  Instant,
  ListPage,
  ListQuery,
  NameInfo,
  Notice,
  QueueCommand,
  QueueRecord,
  ReleaseRequest,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from 'holdfast/store'

/** The far side: one plain record per name, who listens, and the clock that leases are measured by. */
export class ObjectDatabase {
  readonly records: Record<string, QueueRecord> = Object.create(null) as Record<string, QueueRecord>
  readonly listeners = new Map<string, StoreListener>()
  /** The last token of all names that were forgotten. */
  fence = 0
  readonly now: () => Instant

  constructor(now: () => Instant) {
    this.now = now
  }
}

/** One way through the network. Rejects when it takes longer than `timeout`. */
export type Cross = (timeout: number) => Promise<void>

export class ObjectStore implements Store {
  readonly kind = 'object'
  readonly capabilities: Capabilities = {
    queue: true,
    shared: true,
    permits: true,
    fencing: 'monotonic',
    wakeups: 'push',
    reach: 'process',
    minTtl: 1,
    maxTtl: 86_400_000,
    earlyExpiry: 0,
    guarantees: {
      holderCrash: 'holds',
      holderPause: 'fenced',
      partition: 'holds',
      storeRestart: 'breaks',
      failover: 'n/a',
      storeClockJump: 'breaks',
    },
  }
  protected readonly db: ObjectDatabase
  protected readonly cross: Cross

  constructor(db: ObjectDatabase, cross: Cross) {
    this.db = db
    this.cross = cross
  }

  claim(request: ClaimRequest, timeout: number): Promise<AnswerOf['claim']> {
    return this.ask(timeout, () => this.change(request.name, { kind: 'claim', request }))
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const answers = await this.ask(timeout, () =>
      requests.map((request) => this.change(request.name, { kind: 'renew', request })),
    )
    return 'kind' in answers ? requests.map(() => answers) : answers
  }

  async release(
    claim: ReleaseRequest,
    next: ClaimRequest | undefined,
    timeout: number,
  ): Promise<ReleaseResult> {
    const result = await this.ask(timeout, () => this.change(claim.name, { kind: 'release', claim, next }))
    if (!('kind' in result)) return result
    return next === undefined ? { released: result } : { released: result, next: result }
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<AnswerOf['withdraw']> {
    return this.ask(timeout, () => this.change(claim.name, { kind: 'withdraw', claim }))
  }

  downgrade(claim: ClaimRef, timeout: number): Promise<AnswerOf['downgrade']> {
    return this.ask(timeout, () => this.change(claim.name, { kind: 'downgrade', claim }))
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.ask(timeout, () => {
      this.db.listeners.set(session, listener)
      return { kind: 'watching' as const, stop: () => void this.db.listeners.delete(session) }
    })
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.ask(timeout, () => view(fromRecord(this.db.records[name]), name, this.db.now()))
  }

  list({ prefix = '', limit = 100, cursor = '' }: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return this.ask(timeout, () => {
      const inUse = Object.keys(this.db.records)
        .filter((name) => name.startsWith(prefix) && name > cursor && this.isInUse(name))
        .sort()
      const names = inUse.slice(0, limit)
      const last = names.at(-1)
      return inUse.length > limit && last !== undefined ? { names, cursor: last } : { names }
    })
  }

  close(): void {}

  /** There and back. Whatever goes wrong on the way, nobody can tell whether it was done. */
  protected async ask<T>(timeout: number, work: () => T): Promise<T | Unknown> {
    try {
      await this.cross(timeout)
      const answer = work()
      await this.cross(timeout)
      return answer
    } catch (cause) {
      return { kind: 'unknown', cause }
    }
  }

  /** Reads, steps and writes, with nobody in between: your database's transaction, or a compare-and-set. */
  protected change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const { db } = this
    const state = fromRecord(db.records[name], db.fence)
    const { answer, notices } = step(state, command, db.now(), (session) => db.listeners.has(session))
    if (isIdle(state)) {
      // Tokens grow also for a name that comes back.
      db.fence = Math.max(db.fence, state.fence)
      delete db.records[name]
    } else db.records[name] = toRecord(state)
    this.tell(notices)
    return answer
  }

  /** After the change is made, never from inside it. A message that gets lost costs a delay and nothing else. */
  protected tell(notices: readonly Notice[]): void {
    for (const { session, event } of notices) {
      this.cross(Infinity)
        .then(() => this.db.listeners.get(session)?.(event))
        .catch(() => {})
    }
  }

  protected isInUse(name: string): boolean {
    const { holders, waiters } = view(fromRecord(this.db.records[name]), name, this.db.now())
    return holders.length + waiters.length > 0
  }
}
