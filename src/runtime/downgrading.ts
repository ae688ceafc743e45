import { backOff } from '../core/back-off.ts'
import type { DowngradeAnswer } from '../core/contract.ts'
import { BrokenStoreError, ClosedError, StoreUnavailableError, UnsupportedError } from '../core/errors.ts'
import { DOWNGRADE } from '../core/answers.ts'
import { bare } from '../core/error-printing.ts'
import { shown } from '../core/printing.ts'
import { withFirst, without } from './claims.ts'
import { Deadline } from './deadlines.ts'
import { events } from './events.ts'
import { resume } from './holding.ts'
import type { ClaimLease } from './lease.ts'
import type { Session } from './session.ts'

const PAUSE_MS = { first: 25, longest: 1000 }
/** A request may take as much of the ttl as a renewal may: another one can follow while the lease lasts. */
const PER_TTL = 1 / 6
const MIN_TIMEOUT_MS = 50

/**
 * A writer's lease becomes a reader's. Here it is one before the store hears of it: from the moment the request leaves, others may be
 * let in beside it, and nothing that happens meanwhile (a release, a renewal, a lost answer) may give the claim to a writer of this
 * process. Throws when the lease has ended; a second call shares the first one's answer.
 */
export function downgrade(lease: ClaimLease): Promise<void> {
  lease.assertHeld()
  const { lane } = lease.claim
  if (lane.session.store.downgrade === undefined) throw unsupported(lane.name, lane.session.store.kind)
  const before = lease.downgrade
  if (before !== null && !before.failed) return before.done
  const attempt = new Downgrade(lease)
  lease.downgrade = attempt
  if (before === null) moveToReaders(lease)
  attempt.ask()
  // The writers in line here have lost their claim, and stand in line at the store from now on.
  if (before === null) lane.pump()
  return attempt.done
}

/** The claim goes to the readers' lane, whose tasks may share it. */
function moveToReaders(lease: ClaimLease): void {
  const { claim } = lease
  const from = claim.lane
  const { session, name, kind } = from
  const to = session.lane(name, session.kindOf({ ...kind, weight: 1 }), null)
  from.claims = without(from.claims, claim)
  // In front of one that may be queued: readers share the first. The other is given up when nobody needs it.
  to.claims = withFirst(to.claims, claim)
  claim.moveTo(to, lease)
}

/** The request to the store, repeated with pauses until it is answered or the lease ends. */
export class Downgrade extends Deadline {
  readonly done: Promise<void>
  /** It was given up without an answer, and may be tried again. */
  failed = false
  /** The lease has ended: nobody hears of the answer. */
  private left = false
  private readonly lease: ClaimLease
  private readonly session: Session
  private readonly since: number
  private attempts = 0
  private over = false
  private resolve: () => void = () => undefined
  private reject: (error: unknown) => void = () => undefined

  constructor(lease: ClaimLease) {
    super()
    this.lease = lease
    this.session = lease.claim.lane.session
    this.since = this.session.clock.now()
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  ask(): void {
    const { session, lease } = this
    const { claim } = lease
    // By our own clocks it may just have ended; whoever looks at the lease ends what is over.
    if (!lease.held && claim.state !== 'held') return
    if (session.lettingGo) return this.fail(closed(claim.name))
    const timeout = Math.max(MIN_TIMEOUT_MS, Math.min(session.requestTimeout, claim.ttl * PER_TTL))
    session.ask<DowngradeAnswer>(
      DOWNGRADE,
      () =>
        session.store.downgrade === undefined
          ? NO_SUCH_METHOD
          : session.store.downgrade(claim.ref(), timeout),
      (answer) => this.answered(answer),
    )
  }

  due(): void {
    this.ask()
  }

  /**
   * The lease was released or lost: there is nothing left to wait for. Readers here may share its claim, which the store may have as a
   * writer's and keep all others from: for them it is asked on.
   */
  end(): void {
    if (this.over || this.left) return
    this.left = true
    if (this.lease.claim.state !== 'held') this.finish()
    // From now on the pause keeps no process alive.
    else if (this.list !== null) this.pause()
    try {
      this.lease.assertHeld()
    } catch (error) {
      this.reject(error)
    }
  }

  private answered(answer: DowngradeAnswer): void {
    const { claim } = this.lease
    if (this.over || claim.state !== 'held') return
    switch (answer.kind) {
      case 'downgraded':
        return this.succeed()
      case 'lost':
        return this.session.upkeep.lose(claim, 'the store does not know it any more')
      case 'unknown':
        // A store that is broken would be asked for as long as the lease is renewed.
        if (answer.retryable !== false && !(bare(answer.cause) instanceof BrokenStoreError))
          return this.pause()
        return this.fail(unanswered(claim.name, this.session.store.kind, answer.cause))
    }
  }

  private succeed(): void {
    const { lease, session } = this
    const { claim } = lease
    this.finish()
    if (events.downgraded.hasSubscribers) {
      const { name, token } = lease
      const took = session.clock.now() - this.since
      events.downgraded.publish(shown({ name, store: session.store.kind, token, took }))
    }
    this.resolve()
    // Readers in line here come in, unless others go first. A renewal that is under way may be older than the queue, and what is not to be
    // renewed is not asked about.
    if (!claim.contended || claim.inFlight || !claim.lane.renew) return resume(claim)
    // Who waited behind the writer may have been a reader, which is in by now: whether anybody waits is asked anew, and then
    // it goes on. (If the answer told it, that could be older than the message that a queue has formed.)
    claim.forgetOthers()
    session.upkeep.renewNow(claim)
  }

  private pause(): void {
    const { env, clock, waits, expiries } = this.session
    const pause = backOff(this.attempts++, PAUSE_MS, env.random())
    if (this.left) expiries.set(this, clock.now() + pause, Math.ceil(pause))
    else waits.set(this, env.mono() + pause, Math.ceil(pause))
  }

  private fail(error: Error): void {
    this.failed = true
    this.finish()
    this.reject(error)
  }

  private finish(): void {
    this.over = true
    this.cancel()
  }
}

const NO_SUCH_METHOD: DowngradeAnswer = {
  kind: 'unknown',
  cause: new Error('The store has no downgrade'),
  retryable: false,
}

function unsupported(lock: string, store: string): UnsupportedError {
  const message =
    `The ${store} store cannot turn a write lock into a read lock. Release it, take the read lock, and check what you ` +
    'read; or use the memory, redis, sqlite, mysql, postgres, zookeeper or holdfast store.'
  return new UnsupportedError(message, { lock, store })
}

function unanswered(lock: string, store: string, cause: unknown): StoreUnavailableError {
  const message = `The ${store} store did not say whether "${lock}" is a read lock now. Others may read it: do not write any more.`
  return new StoreUnavailableError(message, { lock, store, cause })
}

function closed(lock: string): ClosedError {
  const message = `The Holdfast was closed before the store said whether "${lock}" is a read lock now. Others may read it: do not write any more.`
  return new ClosedError(message, { lock })
}
