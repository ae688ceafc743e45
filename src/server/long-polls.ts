import { randomBytes } from 'node:crypto'

import { sessionOf } from '../core/claim-queue.ts'
import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  Held,
  RenewRequest,
  StoreEvent,
  Watch,
} from '../core/contract.ts'
import { systemEnv } from '../runtime/env.ts'
import { Session } from '../runtime/session.ts'
import type { Caller } from './caller.ts'
import { busy, Failure, timedOut, unavailable } from './failure.ts'
import { leaveLine, releaseOnce } from './leave-line.ts'
import type { Leaving } from './leave-line.ts'
import type { LockService } from './service.ts'
import type { Sessions } from './sessions.ts'
import type { StreamCounts } from './stream-counts.ts'
import { when } from './when.ts'

export interface Wish {
  readonly name: string
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
  readonly wait: number
  readonly owner: string
  /** The secret, if the client made it: it can then give back what it may have been granted. */
  readonly lease?: string | undefined
}

export interface Grant {
  /** The claim's id: who has it can renew and release. */
  readonly secret: string
  readonly token: bigint
  readonly waited: number
}

/** The server's own patience with its store: it is asked three times as often. */
const PATIENCE_MS = 9000
const STORE_TIMEOUT_MS = 5000
const POLL_MS = { shortest: 10, longest: 500 }
/** A store that is in reach again says so for each session, and there is one for each request that waits. */
const GAPS_TOGETHER_MS = 50

/** One request that waits for a lock. */
interface Poll {
  request: ClaimRequest
  readonly caller: Caller
  readonly since: number
  readonly settle: (outcome: Grant | Failure) => void
  timer: NodeJS.Timeout | undefined
  /** After which the store is asked again, where nobody will tell. */
  again: NodeJS.Timeout | undefined
  /** Not asked for yet, asked for, stands, or cannot be had. */
  watch: Watch | 'none' | 'asked' | 'refused'
  /** It waits, and is counted for that. */
  readonly waits: boolean
  /** The client made the secret. */
  readonly known: boolean
  /** The store was asked, and has not answered. */
  asking: boolean
  /** It stands in line, as far as the store has said. */
  queued: boolean
  /** Its wait is over, and the question that gives its place up is under way. */
  leaving: boolean
  /** Its wait is over, and the store's answer to it is not there yet. */
  late: boolean
  /** The client gave it back before it was answered. */
  unwanted: boolean
  /** The store may know more of it than we do. */
  doubtful: boolean
  /** Granted, or given up. */
  over: boolean
}

/**
 * Locks for those who only speak HTTP: the server makes the claim, stands in line for them, and gives its id away as the
 * lease's secret. Nothing about a lease is remembered here once it is given: any other server of the same store can
 * renew and release it.
 */
export class LongPolls {
  private readonly service: LockService
  private readonly sessions: Sessions
  /** Takes away what nobody wants. Holding and waiting are not its business: see docs/adr/0008-leases-over-http.md. */
  private readonly cleaner: Session
  /** A request that waits keeps its connection, like a stream. */
  private readonly counts: StreamCounts
  private readonly inLine = new Map<string, Poll>()
  /** The last request with each secret of a client's, while it or its question to the store is under way. */
  private readonly latest = new Map<string, Poll>()
  /** There is no other server of this store. */
  private readonly alone: boolean
  private heartbeat: NodeJS.Timeout | null = null
  private gap: NodeJS.Timeout | null = null
  /** The same one for all: requests with leases of one session listen together. */
  private readonly listener = (event: StoreEvent): void => this.told(event)
  private readonly confirms = (claimId: string): boolean => this.inLine.has(claimId)

  constructor(service: LockService, sessions: Sessions, counts: StreamCounts, alone: boolean) {
    this.service = service
    this.alone = alone
    this.sessions = sessions
    this.counts = counts
    this.cleaner = new Session(service.store, {
      env: systemEnv,
      clock: {},
      owner: 'lock server',
      patience: PATIENCE_MS,
      requestTimeout: STORE_TIMEOUT_MS,
      turn: { count: 1, ms: 0 },
    })
  }

  /** `onGone` is given what to do when the client goes away. Rejects with a `Failure` only. */
  async acquire(caller: Caller, wish: Wish, onGone: (leave: () => void) => void): Promise<Grant> {
    const { wait, lease, ...rest } = wish
    // A session of its own: what a client learns from its lease says nothing about anybody else's.
    const request: ClaimRequest = {
      ...rest,
      id: lease ?? `${secret()}.${secret()}`,
      patience: PATIENCE_MS,
      tokens: 1,
      whenBusy: 'try',
    }
    const before = this.latest.get(request.id)?.request
    // The store would answer both by what it was asked first.
    if (before !== undefined && !isSame(before, request))
      throw new Failure('ID_IN_USE', 'A request with this lease is under way for something else.')
    const earlier = this.earlierOf(caller, request)
    if (wait > 0 && !this.counts.enter(caller.principal))
      throw new Failure('TOO_MANY', 'There are too many requests that wait, and streams.', { retryAfter: 1 })
    const watch = earlier === undefined ? 'none' : this.takeOver(earlier)
    return new Promise<Grant>((resolve, reject) => {
      const poll: Poll = {
        request: wait > 0 && typeof watch === 'object' ? { ...request, whenBusy: 'queue' } : request,
        caller,
        since: performance.now(),
        settle: (outcome) => (outcome instanceof Failure ? reject(outcome) : resolve(outcome)),
        timer: undefined,
        again: undefined,
        watch,
        waits: wait > 0,
        known: lease !== undefined,
        asking: false,
        queued: false,
        leaving: false,
        late: false,
        unwanted: false,
        doubtful: true,
        over: false,
      }
      if (poll.known) this.latest.set(request.id, poll)
      onGone(() => this.leave(poll, new Failure('LOCK_TIMEOUT', 'The client went away.')))
      if (wait === 0) return this.ask(poll, false)
      poll.timer = setTimeout(() => this.timeUp(poll), wait)
      // Before the answer: a grant may overtake it.
      this.inLine.set(request.id, poll)
      this.ask(poll, true)
    })
  }

  /** Everybody who waits is sent away. Who knows the secret already can come back with it, and need not lose its place. */
  stop(failure: Failure, { keepPlaces }: { readonly keepPlaces: boolean }): void {
    for (const poll of this.inLine.values()) {
      if (keepPlaces && poll.known) this.finish(poll, failure)
      else this.leave(poll, failure)
    }
  }

  /** What is not taken away by then runs out by itself. */
  async close(within: number): Promise<void> {
    if (this.heartbeat !== null) clearInterval(this.heartbeat)
    if (this.gap !== null) clearTimeout(this.gap)
    await this.cleaner.close({ release: true, drain: 0, timeout: within }, () => undefined)
  }

  /** The client gives back what it has asked for: no request goes on to wait for it. */
  givenBack({ name, id }: ClaimRef): void {
    const poll = this.latest.get(id)
    if (poll?.request.name !== name) return
    poll.unwanted = true
    this.finish(poll, new Failure('LOCK_TIMEOUT', 'The lease was released while this request waited.'))
  }

  /** Takes a lease back that could not be delivered, and whose secret nobody else knows. */
  undo(caller: Caller, { name, id, ttl }: ClaimRef & { readonly ttl: number }): void {
    this.service.records.ended(caller, 'undo', { name, id }, { kind: 'released' })
    this.cleaner.cleanup.remove({ name, id }, false, ttl)
  }

  /** The request that waits with the same secret, if there is one, and if it is the caller's own. */
  private earlierOf(caller: Caller, { name, id }: ClaimRequest): Poll | undefined {
    const earlier = this.inLine.get(id)
    if (earlier === undefined) return undefined
    this.service.assertMay(caller, 'acquire', name)
    this.sessions.assertOwn(caller.principal, sessionOf(id))
    return earlier
  }

  /**
   * A client that asks again while its earlier request waits may have lost that connection long before we know: the later
   * request has the place, and what listens for it.
   */
  private takeOver(earlier: Poll): Poll['watch'] {
    const { watch } = earlier
    earlier.watch = 'none'
    this.finish(earlier, new Failure('LOCK_TIMEOUT', 'A later request with this lease waits instead.'))
    // What answers that question is for the earlier one.
    return watch === 'asked' ? 'none' : watch
  }

  private ask(poll: Poll, patient: boolean): void {
    const { request } = poll
    const settle = (answer: ClaimAnswer): void => this.answered(poll, request, answer, patient)
    const fail = (error: unknown): void => {
      poll.asking = false
      this.finish(poll, error instanceof Failure ? error : unavailable())
      this.forget(poll)
    }
    poll.asking = true
    try {
      const firstTry = patient && (poll.watch === 'asked' || this.canQueue(poll))
      const answer = this.service.claim(poll.caller, request, STORE_TIMEOUT_MS, { firstTry })
      // What is made of the answer may be refused as well.
      if (answer instanceof Promise) answer.then(settle).catch(fail)
      else settle(answer)
    } catch (error) {
      fail(error)
    }
  }

  private answered(poll: Poll, { whenBusy }: ClaimRequest, answer: ClaimAnswer, patient: boolean): void {
    poll.asking = false
    poll.doubtful = answer.kind === 'unknown'
    poll.queued = answer.kind === 'queued'
    if (poll.over) {
      if (answer.kind !== 'busy' && answer.kind !== 'mismatch') this.remove(poll)
      return this.forget(poll)
    }
    switch (answer.kind) {
      case 'held':
        return this.granted(poll, answer.token)
      case 'queued':
        if (poll.late) return this.timeUp(poll)
        // It stands in line since an earlier request, of which the store has told nobody.
        if (!patient) return this.leave(poll, busy())
        if (this.canQueue(poll)) return this.standInLine(poll)
        this.heartbeat ??= setInterval(() => this.beat(), PATIENCE_MS / 3)
        return
      case 'mismatch': {
        const { capacity } = answer
        const message = `That name is in use with a capacity of ${capacity}.`
        return this.finish(poll, new Failure('CAPACITY_MISMATCH', message, { fields: { capacity } }))
      }
      case 'unknown':
        this.remove(poll)
        return this.finish(poll, unavailable())
      case 'busy': {
        if (!patient) return this.finish(poll, busy())
        if (poll.late) return this.timeUp(poll)
        if (this.canQueue(poll)) return this.standInLine(poll)
        // The store began to listen while it was asked.
        if (whenBusy === 'try' && poll.request.whenBusy === 'queue') return this.ask(poll, patient)
        this.askLater(poll)
      }
    }
  }

  /** Where nobody will tell: the more seldom the longer it takes. */
  private askLater(poll: Poll): void {
    const waited = performance.now() - poll.since
    const pause = poll.watch === 'asked' ? POLL_MS.longest : Math.max(waited / 8, POLL_MS.shortest)
    poll.again = setTimeout(() => this.ask(poll, true), Math.min(pause, POLL_MS.longest))
    poll.again.unref()
  }

  private told(event: StoreEvent): void {
    if (event.kind === 'gap') {
      this.gap ??= setTimeout(() => {
        this.gap = null
        this.beat()
      }, GAPS_TOGETHER_MS)
      return
    }
    if (event.kind !== 'granted') return
    const poll = this.inLine.get(event.id)
    // It was given for the pick-up time only; the renewal makes it the full ttl. Who leaves has asked already.
    if (poll !== undefined && !poll.leaving) this.renew([poll])
  }

  private beat(): void {
    // Of others the store knows nothing yet, and would say that they are lost: they would be asked for twice.
    const queued = [...this.inLine.values()].filter((poll) => poll.queued)
    if (queued.length > 0) return this.renew(queued)
    if (this.inLine.size > 0) return
    if (this.heartbeat !== null) clearInterval(this.heartbeat)
    this.heartbeat = null
  }

  private renew(polls: readonly Poll[]): void {
    const { store, registry } = this.service
    const requests = polls.map(({ request: { name, id, ttl } }) => ({
      name,
      id,
      ttl,
      patience: PATIENCE_MS,
      tokens: 1,
    }))
    const done = (answers: Awaited<ReturnType<typeof store.renew>>): void => {
      // Which of them was left out nobody can say.
      if (answers.length !== polls.length) return
      polls.forEach((poll, index) => {
        const answer = answers[index]
        const request = requests[index]
        if (answer === undefined || request === undefined) return
        if (answer.kind === 'held' && !poll.over) return this.pickUp(poll, request, answer)
        registry.renewed(request, answer)
        if (poll.over || poll.asking || poll.leaving) return
        // The store forgot it: from the start again, at the end of the line. Or whoever was told of the grant first was not
        // this request, and there is no token for it: what the claim itself is answered has one.
        if (answer.kind === 'lost' || answer.kind === 'renewed') this.ask(poll, true)
      })
    }
    const answers = store.renew(requests, STORE_TIMEOUT_MS)
    if (answers instanceof Promise) answers.then(done, () => undefined)
    else done(answers)
  }

  private pickUp(poll: Poll, request: RenewRequest, lease: Held): void {
    const { records, registry } = this.service
    if (!records.granted(poll.caller, request, lease.token)) return this.finish(poll, unavailable())
    registry.renewed(request, lease)
    this.granted(poll, lease.token)
  }

  private granted(poll: Poll, token: bigint): void {
    if (poll.over) return this.remove(poll)
    this.finish(poll, { secret: poll.request.id, token, waited: Math.round(performance.now() - poll.since) })
  }

  /**
   * Where the client made the secret, the question by which its place is given up may find that it has become a lease, and
   * no server can take that back. But the client is still there, and is told. So is one whose claim a slow store has not
   * answered: who heard that its time is over would not give back what it has.
   */
  private timeUp(poll: Poll): void {
    const failure = timedOut(performance.now() - poll.since)
    clearTimeout(poll.timer)
    // A claim would bring the place back, as a sign of life would.
    clearTimeout(poll.again)
    if (poll.known && poll.asking) {
      poll.late = true
      poll.timer = setTimeout(() => this.finish(poll, unavailable()), STORE_TIMEOUT_MS)
      return
    }
    if (!poll.known || !this.isOurs(poll)) return this.leave(poll, failure)
    const { request } = poll
    poll.leaving = true
    // No sign of life from now on: it would bring the place back.
    poll.queued = false
    // The store may not answer.
    poll.timer = setTimeout(() => this.finish(poll, failure), STORE_TIMEOUT_MS)
    this.giveUp(poll, {
      wanted: (lease) => {
        if (poll.over) return false
        if (lease.kind === 'held') this.pickUp(poll, request, lease)
        else {
          poll.late = true
          this.ask(poll, true)
        }
        return true
      },
      left: () => this.finish(poll, failure),
    })
  }

  private leave(poll: Poll, failure: Failure): void {
    if (poll.over) return
    this.remove(poll)
    this.finish(poll, failure)
  }

  private finish(poll: Poll, outcome: Grant | Failure): void {
    if (poll.over) return
    poll.over = true
    clearTimeout(poll.timer)
    clearTimeout(poll.again)
    if (poll.waits) this.counts.leave(poll.caller.principal)
    this.inLine.delete(poll.request.id)
    if (typeof poll.watch === 'object') poll.watch.stop()
    this.forget(poll)
    poll.settle(outcome)
  }

  private forget(poll: Poll): void {
    const { id } = poll.request
    if (poll.over && !poll.asking && this.latest.get(id) === poll) this.latest.delete(id)
  }

  private remove(poll: Poll): void {
    const { caller, request, known, doubtful, unwanted } = poll
    if (known && !this.isOurs(poll)) return
    const { store, records, withdrawals } = this.service
    if (known && !unwanted) return this.giveUp(poll, {})
    records.ended(caller, 'leave', request, { kind: 'released' })
    if (known) return releaseOnce(store, request, STORE_TIMEOUT_MS)
    // A place that is known is released, and leaves no note.
    if (doubtful) withdrawals.add(caller.principal)
    this.cleaner.cleanup.remove(request, doubtful, request.ttl)
  }

  private giveUp(poll: Poll, { wanted, left }: Partial<Pick<Leaving, 'wanted' | 'left'>>): void {
    const { caller, request } = poll
    const { store, records, registry } = this.service
    const isLatest = (): boolean => (this.latest.get(request.id) ?? poll) === poll
    leaveLine(store, request, {
      timeout: STORE_TIMEOUT_MS,
      untold: () => this.alone && isLatest() && registry.waiterOf(request) !== null,
      ...(wanted === undefined ? {} : { wanted }),
      left: (answer) => {
        // What a later request with the secret has come to is its own.
        if (isLatest()) records.left(caller, request, answer)
        left?.(answer)
      },
    })
  }

  /**
   * Who made the secret may ask again with it, here or at another server of the store, before we know that this connection
   * is gone. What it has been granted there is not ours to take away: only a place in line is given up, at once or
   * not at all, and whatever the client gave back itself. The rest ends with its ttl, or is released by who knows it.
   */
  private isOurs(poll: Poll): boolean {
    return this.latest.get(poll.request.id) === poll && (poll.queued || poll.unwanted)
  }

  private canQueue({ watch }: Poll): boolean {
    return watch === 'none' && this.service.store.capabilities.queue
  }

  /**
   * Only who finds it taken listens for its turn: most do not have to. Where grants cannot be told there is no queueing
   * either, for who is not told would be passed over.
   */
  private standInLine(poll: Poll): void {
    poll.watch = 'asked'
    const session = sessionOf(poll.request.id)
    const asked = when(
      this.sessions.watch(
        session,
        { ...poll.caller, confirms: this.confirms },
        this.listener,
        STORE_TIMEOUT_MS,
      ),
      (watch) => {
        poll.watch = watch.kind === 'watching' ? watch : 'refused'
        if (poll.over) return watch.kind === 'watching' ? watch.stop() : undefined
        if (watch.kind === 'watching') poll.request = { ...poll.request, whenBusy: 'queue' }
        if (poll.asking || poll.leaving) return
        clearTimeout(poll.again)
        this.ask(poll, true)
      },
    )
    if (!(asked instanceof Promise)) return
    asked.then(undefined, () => this.finish(poll, unavailable()))
    // A connection to listen on may be swallowed where others work.
    this.askLater(poll)
  }
}

const secret = (): string => randomBytes(16).toString('base64url')

const isSame = (one: ClaimRequest, other: ClaimRequest): boolean =>
  one.name === other.name && one.weight === other.weight && one.capacity === other.capacity
