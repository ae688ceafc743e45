import { RELEASE, WITHDRAW } from '../core/answers.ts'
import type { ClaimRef, ReleaseAnswer, ReleaseResult } from '../core/contract.ts'
import type { LeftLock } from './closing.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import type { Session } from './session.ts'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000

/**
 * Takes claims that nobody wants any more away from the store: asks until it is confirmed, or until the store must
 * have forgotten them by itself. No caller waits for it and no signal stops it.
 */
export class Cleanup {
  private readonly session: Session
  private readonly pauses: Deadlines
  private readonly open = new Set<Removal>()
  private stopped = false

  constructor(session: Session) {
    this.session = session
    // Keeps the process alive: leaving would leave a ghost behind. Ends with the claim's ttl at the latest.
    this.pauses = new Deadlines(session.steady, session.env, { background: false })
  }

  /** `doubtful`: a copy of a request may still be under way, so the id has to be refused from now on. */
  remove(claim: ClaimRef, doubtful: boolean, ttl: number): void {
    if (this.stopped) return
    // Not by the clock that leases are believed by: that one may be ahead of the store's.
    const removal = new Removal(this, claim, doubtful, this.session.env.mono() + ttl)
    this.open.add(removal)
    this.attempt(removal)
  }

  /** What has not been confirmed. */
  left(): readonly LeftLock[] {
    const now = this.session.env.mono()
    return [...this.open].map(({ claim: { name }, until }) => ({ name, within: until - now }))
  }

  /** Asks no more. */
  stop(): void {
    this.stopped = true
    for (const removal of this.open) removal.cancel()
    this.open.clear()
    this.pauses.stop()
  }

  attempt(removal: Removal): void {
    const { store, requestTimeout } = this.session
    const { claim, doubtful } = removal
    this.session.ask<ReleaseAnswer | ReleaseResult>(
      doubtful ? WITHDRAW : RELEASE,
      () =>
        doubtful ? store.withdraw(claim, requestTimeout) : store.release(claim, undefined, requestTimeout),
      (answer) => this.settle(removal, 'kind' in answer ? answer : answer.released),
    )
  }

  /** Nothing is left to remove, or nothing that asking would help. */
  get done(): boolean {
    for (const { hopeless } of this.open) if (!hopeless) return false
    return true
  }

  private settle(removal: Removal, answer: ReleaseAnswer): void {
    const { kind } = answer
    const now = this.session.env.mono()
    if (kind !== 'unknown' || now >= removal.until) {
      this.open.delete(removal)
      return this.session.closing?.look()
    }
    if (this.stopped) return
    removal.doubtful = true
    removal.hopeless = answer.kind === 'unknown' && answer.retryable === false
    if (removal.hopeless) this.session.closing?.look()
    removal.pause = Math.min(removal.pause * 2, LONGEST_PAUSE_MS)
    const at = Math.min(now + removal.pause * (0.5 + this.session.env.random() / 2), removal.until)
    this.pauses.set(removal, at, removal.pause)
  }
}

class Removal extends Deadline {
  private readonly cleanup: Cleanup
  readonly claim: ClaimRef
  doubtful: boolean
  /** After that the store has forgotten the claim by itself. */
  readonly until: number
  pause: number = FIRST_PAUSE_MS / 2
  /** The store says that asking again cannot help: it may all the same, but nobody waits for that. */
  hopeless = false

  constructor(cleanup: Cleanup, { name, id }: ClaimRef, doubtful: boolean, until: number) {
    super()
    this.cleanup = cleanup
    this.claim = Object.freeze({ name, id })
    this.doubtful = doubtful
    this.until = until
  }

  due(): void {
    this.cleanup.attempt(this)
  }
}
