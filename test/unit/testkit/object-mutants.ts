import { ALL, fromRecord, step, toRecord, view } from 'holdfast/store'
import type {
  AnswerOf,
  ClaimInfo,
  ClaimRef,
  ClaimRequest,
  NameInfo,
  Notice,
  QueueCommand,
  QueueRecord,
  ReleaseRequest,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  StoreListener,
  Unknown,
  Watch,
} from 'holdfast/store'
import type { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { ObjectStore } from './object-store.ts'
import type { Cross, ObjectDatabase } from './object-store.ts'

/** What an author gets wrong, one mistake each, in a store that is right otherwise. */
export interface Mutant {
  readonly mistake: string
  readonly Client: new (db: ObjectDatabase, cross: Cross, env: VirtualEnv) => ObjectStore
  /** Cases that must notice it, whatever the network does. */
  readonly caughtBy: readonly string[]
}

const REMEMBERED_MS = 1000

/** Takes a claim out of its queue, and nothing else happens. */
function remove({ records }: ObjectDatabase, { name, id }: ClaimRef, from: 'holders' | 'waiters'): boolean {
  const record = records[name]
  if (record === undefined || !record[from].some((each) => each.id === id)) return false
  records[name] = { ...record, [from]: record[from].filter((each) => each.id !== id) }
  return true
}

class CalmReleaseWakesNobody extends ObjectStore {
  override async release(
    claim: ReleaseRequest,
    next: ClaimRequest | undefined,
    timeout: number,
  ): Promise<ReleaseResult> {
    if (claim.uncontended !== true || next !== undefined) return super.release(claim, next, timeout)
    const removed = await this.ask(timeout, () => remove(this.db, claim, 'holders'))
    return { released: { kind: removed === true ? 'released' : 'not-held' } }
  }
}

class LeavingLetsNobodyIn extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const leaving = command.kind === 'release' && command.next === undefined
    if (!leaving || !remove(this.db, command.claim, 'waiters')) return super.change(name, command)
    return { released: { kind: 'released' } } as AnswerOf[C['kind']]
  }
}

class WithdrawnWaiterLetsNobodyIn extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const { records } = this.db
    if (command.kind !== 'withdraw' || !remove(this.db, command.claim, 'waiters'))
      return super.change(name, command)
    const record = records[name] as QueueRecord
    const until = this.db.now().ms + 60_000
    records[name] = { ...record, withdrawn: { ...record.withdrawn, [command.claim.id]: until } }
    return { kind: 'released' } as AnswerOf[C['kind']]
  }
}

class TellsTheFirstHolderOnly extends ObjectStore {
  protected override tell(notices: readonly Notice[]): void {
    const first = notices.find(({ event }) => event.kind === 'contended')
    super.tell(notices.filter((notice) => notice.event.kind !== 'contended' || notice === first))
  }
}

class ForgetsWithdrawals extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const { db } = this
    const answer = super.change(name, command)
    const record = db.records[name]
    if (record === undefined || command.kind !== 'withdraw') return answer
    db.records[name] = {
      ...record,
      withdrawn: { ...record.withdrawn, [command.claim.id]: db.now().ms + REMEMBERED_MS },
    }
    return answer
  }
}

class ListsTheDead extends ObjectStore {
  protected override isInUse(name: string): boolean {
    const { holders, waiters } = this.db.records[name] ?? { holders: [], waiters: [] }
    return holders.length + waiters.length > 0
  }
}

class ShowsTheDead extends ObjectStore {
  override inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.ask(timeout, () => view(fromRecord(this.db.records[name]), name, { ms: 0, micros: 0 }))
  }
}

class ShowsSeconds extends ObjectStore {
  override async inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    const info = await super.inspect(name, timeout)
    if ('kind' in info) return info
    const inSeconds = (claim: ClaimInfo): ClaimInfo => ({ ...claim, expiresIn: claim.expiresIn / 1000 })
    return { ...info, holders: info.holders.map(inSeconds), waiters: info.waiters.map(inSeconds) }
  }
}

/** As a session of ZooKeeper's does with its nodes. */
class TakesClaimsAlong extends ObjectStore {
  private readonly made: ClaimRef[] = []

  override claim(request: ClaimRequest, timeout: number): Promise<AnswerOf['claim']> {
    this.made.push(request)
    return super.claim(request, timeout)
  }

  override close(): void {
    for (const claim of this.made) this.change(claim.name, { kind: 'withdraw', claim })
  }
}

class OneWatchOnly extends ObjectStore {
  private before: Watch | null = null

  override async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const watch = await super.watch(session, listener, timeout)
    if (watch.kind === 'unknown') return watch
    this.before?.stop()
    this.before = watch
    return watch
  }
}

class StopsEverybodysWatch extends ObjectStore {
  private readonly mine: Watch[] = []

  override async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const watch = await super.watch(session, listener, timeout)
    if (watch.kind === 'unknown') return watch
    this.mine.push(watch)
    return { kind: 'watching', stop: () => this.mine.forEach((each) => each.stop()) }
  }
}

/** Keeps the ttl that the claim came with. */
class RenewalIgnoresItsTtl extends ObjectStore {
  private readonly ttls = new Map<string, number>()

  override claim(request: ClaimRequest, timeout: number): Promise<AnswerOf['claim']> {
    this.ttls.set(request.id, request.ttl)
    return super.claim(request, timeout)
  }

  override renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const { ttls } = this
    return super.renew(
      requests.map((request) => ({ ...request, ttl: ttls.get(request.id) ?? request.ttl })),
      timeout,
    )
  }
}

/** Reads, thinks, and writes over whatever others have written meanwhile. */
class RenewsInTwoSteps extends ObjectStore {
  private readonly env: VirtualEnv

  constructor(db: ObjectDatabase, cross: Cross, env: VirtualEnv) {
    super(db, cross)
    this.env = env
  }

  override async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    await this.cross(timeout)
    const answers: RenewAnswer[] = []
    for (const request of requests) {
      const state = fromRecord(this.db.records[request.name], this.db.fence)
      await this.env.sleep(this.env.random() * 2)
      const { answer, notices } = step(state, { kind: 'renew', request }, this.db.now())
      this.db.records[request.name] = toRecord(state)
      this.tell(notices)
      answers.push(answer)
    }
    await this.cross(timeout)
    return answers
  }
}

type Clients = Mutant['Client']

/** A store that reads, and writes a moment later, for some of its requests. */
function inTwoSteps(some: (command: QueueCommand, record: QueueRecord | undefined) => boolean): Clients {
  return class extends ObjectStore {
    override claim(request: ClaimRequest, timeout: number): Promise<AnswerOf['claim']> {
      return this.changeSlowly(request.name, { kind: 'claim', request }, timeout)
    }
    override renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
      return Promise.all(
        requests.map((request) => this.changeSlowly(request.name, { kind: 'renew', request }, timeout)),
      )
    }
    override release(
      claim: ReleaseRequest,
      next: ClaimRequest | undefined,
      timeout: number,
    ): Promise<ReleaseResult> {
      return this.changeSlowly(claim.name, { kind: 'release', claim, next }, timeout)
    }
    override downgrade(claim: ClaimRef, timeout: number): Promise<AnswerOf['downgrade']> {
      return this.changeSlowly(claim.name, { kind: 'downgrade', claim }, timeout)
    }

    private async changeSlowly<C extends QueueCommand>(
      name: string,
      command: C,
      timeout: number,
    ): Promise<AnswerOf[C['kind']]> {
      const { db } = this
      await this.cross(timeout)
      const record = db.records[name]
      const state = fromRecord(record, db.fence)
      if (some(command, record)) await this.cross(timeout)
      const { answer, notices } = step(state, command, db.now(), (session) => db.listeners.has(session))
      db.records[name] = toRecord(state)
      this.tell(notices)
      await this.cross(timeout)
      return answer
    }
  }
}

const isOf = (kind: 'permits' | 'readers', record: QueueRecord | undefined): boolean =>
  record !== undefined && record.capacity > 1 && (record.capacity === ALL) === (kind === 'readers')

/** The counter moves by one for each grant, and not by as many tokens as are given out. */
class BlocksOverlap extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const answer = super.change(name, command)
    const record = this.db.records[name]
    if (record !== undefined && 'kind' in answer && answer.kind === 'held')
      this.db.records[name] = { ...record, fence: Number(answer.token) }
    return answer
  }
}

/** Tokens are what the clock says, whatever was given out before. */
class TokensByTheClock extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const record = this.db.records[name]
    if (record !== undefined) this.db.records[name] = { ...record, fence: 0 }
    this.db.fence = 0
    return super.change(name, command)
  }
}

/** What it is to queue again is put in line without a look at whether it holds by now. */
class QueuesItsOwnHolder extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const holds = (id: string): boolean =>
      this.db.records[name]?.holders.some((each) => each.id === id) === true
    const next = command.kind === 'release' ? command.next : undefined
    const answer = super.change(name, command)
    const held = next !== undefined && holds(next.id) && this.seen.has(next.id)
    if (next !== undefined) this.seen.add(next.id)
    return held
      ? ({ released: { kind: 'not-held' }, next: { kind: 'queued' } } as AnswerOf[C['kind']])
      : answer
  }

  private readonly seen = new Set<string>()
}

/** The same command with other claims in it. */
function withClaims<C extends QueueCommand>(command: C, change: <T extends ClaimRef>(claim: T) => T): C {
  const { request, claim, next } = command as Partial<Record<'request' | 'claim' | 'next', ClaimRef>>
  return {
    ...command,
    ...(request && { request: change(request) }),
    ...(claim && { claim: change(claim) }),
    ...(next && { next: change(next) }),
  }
}

class IdsInSmallLetters extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    return super.change(
      name,
      withClaims(command, (claim) => ({ ...claim, id: claim.id.toLowerCase() })),
    )
  }
}

class WeightInAByte extends ObjectStore {
  override claim(request: ClaimRequest, timeout: number): Promise<AnswerOf['claim']> {
    const { weight } = request
    return super.claim({ ...request, weight: weight === ALL ? ALL : weight & 255 }, timeout)
  }
}

class AnswersByName extends ObjectStore {
  override async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const names = new Map(requests.map((request) => [request.name, request]))
    const answers = await super.renew([...names.values()], timeout)
    const byName = new Map([...names.keys()].map((name, at) => [name, answers[at]]))
    return requests.map(({ name }) => byName.get(name) as RenewAnswer)
  }
}

class AnswersInTheOrderOfNames extends ObjectStore {
  override renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    return super.renew(
      requests.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
      timeout,
    )
  }
}

class OneTtlForAll extends ObjectStore {
  override renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const ttl = requests[0]?.ttl ?? 0
    return super.renew(
      requests.map((request) => ({ ...request, ttl })),
      timeout,
    )
  }
}

/** Gives a holder another end than the one that it was granted. */
function end({ records }: ObjectDatabase, { name, id }: ClaimRef, expiresAt: number | undefined): void {
  const record = records[name]
  if (record === undefined || expiresAt === undefined) return
  records[name] = {
    ...record,
    holders: record.holders.map((holder) => (holder.id === id ? { ...holder, expiresAt } : holder)),
  }
}

const endOf = ({ records }: ObjectDatabase, { name, id }: ClaimRef): number | undefined =>
  records[name]?.holders.find((holder) => holder.id === id)?.expiresAt

class NextLastsForItsPatience extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const answer = super.change(name, command)
    if (
      command.kind === 'release' &&
      command.next !== undefined &&
      endOf(this.db, command.next) !== undefined
    )
      end(this.db, command.next, this.db.now().ms + Math.min(command.next.ttl, command.next.patience))
    return answer
  }
}

class RepeatedClaimDoesNotLast extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const before = command.kind === 'claim' ? endOf(this.db, command.request) : undefined
    const answer = super.change(name, command)
    if (command.kind === 'claim') end(this.db, command.request, before)
    return answer
  }
}

class AskedForLastsForItsPatience extends ObjectStore {
  protected override change<C extends QueueCommand>(name: string, command: C): AnswerOf[C['kind']] {
    const waited =
      command.kind === 'renew' &&
      this.db.records[name]?.waiters.some(({ id }) => id === command.request.id) === true
    const answer = super.change(name, command)
    if (waited && endOf(this.db, command.request) !== undefined)
      end(
        this.db,
        command.request,
        this.db.now().ms + Math.min(command.request.ttl, command.request.patience),
      )
    return answer
  }
}

export const mutants: readonly Mutant[] = [
  { mistake: 'a batch has one answer for each name', Client: AnswersByName, caughtBy: ['renew/same-name'] },
  { mistake: 'ids are kept in small letters', Client: IdsInSmallLetters, caughtBy: ['claim/ids-alike'] },
  { mistake: 'a weight has one byte', Client: WeightInAByte, caughtBy: ['permits/many'] },
  {
    mistake: 'the answers of a batch come in the order of the names',
    Client: AnswersInTheOrderOfNames,
    caughtBy: ['renew/mixed'],
  },
  { mistake: 'a batch is renewed for the first ttl', Client: OneTtlForAll, caughtBy: ['renew/own-ttls'] },
  {
    mistake: 'the second half of a release lasts for its patience',
    Client: NextLastsForItsPatience,
    caughtBy: ['queue/fused-lasts'],
  },
  {
    mistake: 'a claim that is sent again does not last anew',
    Client: RepeatedClaimDoesNotLast,
    caughtBy: ['claim/repeated-lasts'],
  },
  {
    mistake: 'a waiter that is granted by its own question has it for its patience',
    Client: AskedForLastsForItsPatience,
    caughtBy: ['expiry/asked-for'],
  },
  {
    mistake: 'a uncontended release wakes nobody',
    Client: CalmReleaseWakesNobody,
    caughtBy: ['release/uncontended'],
  },
  {
    mistake: 'a waiter that leaves lets nobody in',
    Client: LeavingLetsNobodyIn,
    caughtBy: ['queue/leave-lets-in'],
  },
  {
    mistake: 'a waiter that is withdrawn lets nobody in',
    Client: WithdrawnWaiterLetsNobodyIn,
    caughtBy: ['withdraw/lets-in'],
  },
  {
    mistake: 'only the first of several holders is told that somebody waits',
    Client: TellsTheFirstHolderOnly,
    caughtBy: ['events/contended-all'],
  },
  {
    mistake: 'withdrawals are forgotten after a second',
    Client: ForgetsWithdrawals,
    caughtBy: ['withdraw/remembered'],
  },
  { mistake: 'dead holders are listed', Client: ListsTheDead, caughtBy: ['list/expired'] },
  {
    mistake: 'the time that is left is shown in seconds',
    Client: ShowsSeconds,
    caughtBy: ['inspect/holder'],
  },
  { mistake: 'dead holders are shown', Client: ShowsTheDead, caughtBy: ['inspect/unused', 'expiry/own-ttl'] },
  {
    mistake: 'a client that is closed takes along what is held',
    Client: TakesClaimsAlong,
    caughtBy: ['close/left'],
  },
  {
    mistake: 'a second watch replaces the first',
    Client: OneWatchOnly,
    caughtBy: ['events/two-sessions'],
  },
  {
    mistake: 'who stops listening stops everybody',
    Client: StopsEverybodysWatch,
    caughtBy: ['events/two-sessions'],
  },
  {
    mistake: 'a renewal ignores its ttl',
    Client: RenewalIgnoresItsTtl,
    caughtBy: ['renew/longer', 'renew/shorter'],
  },
  {
    mistake: 'a renewal is a read and a write',
    Client: RenewsInTwoSteps,
    caughtBy: ['renew/beside-release', 'renew/beside-claim'],
  },
  {
    mistake: 'a release that queues again is a read and a write',
    Client: inTwoSteps((command) => command.kind === 'release' && command.next !== undefined),
    caughtBy: ['beside/fused'],
  },
  {
    mistake: 'a downgrade is a read and a write',
    Client: inTwoSteps(({ kind }) => kind === 'downgrade'),
    caughtBy: ['beside/downgraded'],
  },
  {
    mistake: 'a sign of life of a waiter is a read and a write',
    Client: inTwoSteps(
      (command, record) =>
        command.kind === 'renew' && record?.waiters.some(({ id }) => id === command.request.id) === true,
    ),
    caughtBy: ['beside/waiter-alive'],
  },
  {
    mistake: 'the renewal of a permit is a read and a write',
    Client: inTwoSteps(({ kind }, record) => kind === 'renew' && isOf('permits', record)),
    caughtBy: ['beside/permits-renewed'],
  },
  {
    mistake: 'the renewal of a reader is a read and a write',
    Client: inTwoSteps(({ kind }, record) => kind === 'renew' && isOf('readers', record)),
    caughtBy: ['beside/readers-renewed'],
  },
  {
    mistake: 'the release of a permit is a read and a write',
    Client: inTwoSteps(({ kind }, record) => kind === 'release' && isOf('permits', record)),
    caughtBy: ['beside/permits-released'],
  },
  {
    mistake: 'the release of a reader is a read and a write',
    Client: inTwoSteps(({ kind }, record) => kind === 'release' && isOf('readers', record)),
    caughtBy: ['beside/readers-released'],
  },
  { mistake: 'blocks of tokens overlap', Client: BlocksOverlap, caughtBy: ['tokens/blocks'] },
  { mistake: 'tokens come from the clock alone', Client: TokensByTheClock, caughtBy: ['tokens/blocks'] },
  {
    mistake: 'a release that is sent twice puts a holder in line behind itself',
    Client: QueuesItsOwnHolder,
    caughtBy: ['queue/fused-repeated-held'],
  },
]
