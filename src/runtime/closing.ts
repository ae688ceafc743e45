import type { MaybePromise } from '../core/contract.ts'
import type { Claim } from './claim.ts'
import { Deadline } from './deadlines.ts'
import * as errors from './lane-errors.ts'
import type { Session } from './session.ts'

const NOW = Promise.resolve()

export interface ClosePlan {
  /** `false`: what is held is left to run out, at once. */
  readonly release: boolean
  /** Milliseconds for which those that hold something may finish. */
  readonly drain: number
  /** Milliseconds, after that, for what the store has to hear. */
  readonly timeout: number
}

/** How a Holdfast came to its end. */
export interface CloseResult {
  /** The names of locks that were still in use when the drain was over. They were taken from their owners. */
  readonly cutShort: readonly string[]
  /** Locks that the store may still know of, because it did not answer in time or was not to be told. They end by themselves. */
  readonly leftToExpire: readonly LeftLock[]
}

export interface LeftLock {
  readonly name: string
  /** Milliseconds after which it has ended at the latest. */
  readonly within: number
}

/**
 * The end of a session. *Draining*: nothing new comes in, owners are asked to finish, and what they hold is held and renewed. *Leaving*:
 * what is left is taken away, and the store is told. Both have an end that no store and no owner can move.
 */
export class Closing extends Deadline {
  readonly done: Promise<CloseResult>
  private readonly session: Session
  private readonly closeStore: () => MaybePromise<void>
  private phase: 'draining' | 'leaving' | 'over' = 'draining'
  private timeout: number
  private cutShort: readonly string[] = []
  /** Claims that are held. Once closing has begun, none is added. */
  private readonly held = new Set<Claim>()
  /** Claims of which the store has not said that it forgot them, and the end of their time. */
  private readonly unsettled = new Map<Claim, number>()
  private resolve: (result: CloseResult | Promise<CloseResult>) => void = () => undefined

  constructor(session: Session, { timeout }: ClosePlan, closeStore: () => MaybePromise<void>) {
    super()
    this.session = session
    this.timeout = timeout
    this.closeStore = closeStore
    this.done = new Promise((resolve) => (this.resolve = resolve))
  }

  begin({ release, drain }: ClosePlan): void {
    const { leaving, unwanted } = this.session
    // What has been given up before, and not been answered, may be left at the store too.
    for (const claim of [...leaving, ...unwanted]) this.unsettle(claim)
    const lanes = this.session.everyLane()
    for (const lane of lanes) lane.close()
    for (const lane of lanes) for (const claim of lane.claimsIn('held')) this.held.add(claim)
    if (release && drain === 0) return this.leave('release')
    if (release) this.setEnd(drain)
    for (const claim of this.held) {
      const { lane } = claim
      claim.warn(release ? errors.closing(lane, drain) : errors.runningOut(lane, this.left(claim)))
    }
    if (release) this.look()
    else this.leave('run out')
  }

  /** A later call may bring the end forward. */
  hasten({ release, drain, timeout }: ClosePlan): void {
    this.timeout = Math.min(this.timeout, timeout)
    if (this.phase === 'draining' && !release) return this.leave('run out')
    if (this.phase === 'draining' && drain === 0) return this.leave('release')
    const left = this.phase === 'draining' ? drain : timeout
    if (this.phase !== 'over' && this.session.env.mono() + left < this.at) this.setEnd(left)
  }

  /** A claim is held no longer, or was not. */
  dropped(claim: Claim): void {
    this.held.delete(claim)
    this.look()
  }

  /** Something ended. What led to it may have more to say to the store, so the look comes after that. */
  look(): void {
    // Not queueMicrotask, which a user's fake timers replace.
    NOW.then(() => this.lookNow()).catch(() => {})
  }

  /** The store is asked to forget the claim, or may grant it yet: until `settled`, it may be left there. */
  unsettle(claim: Claim, lasts: number = claim.lasts): void {
    this.unsettled.set(claim, this.session.env.mono() + lasts)
  }

  settle(claim: Claim): void {
    this.unsettled.delete(claim)
  }

  due(): void {
    if (this.phase === 'draining') this.leave('release')
    else this.finish('late')
  }

  /** Milliseconds for which a claim that is not renewed any more is good. */
  private left({ validUntil }: Claim): number {
    return Math.max(0, Math.floor(validUntil - this.session.clock.now()))
  }

  private lookNow(): void {
    if (this.phase === 'draining' && this.held.size === 0) this.leave('release')
    else if (this.phase === 'leaving' && this.session.quiet) this.finish('in time')
  }

  /** Owners had their time. */
  private leave(how: 'release' | 'run out'): void {
    const { session } = this
    this.phase = 'leaving'
    session.lettingGo = true
    this.setEnd(this.timeout)
    const held = [...this.held]
    // What is on its way from one task to the next is nobody's.
    if (how === 'release') this.cutShort = namesOf(held.filter(({ users }) => users > 0))
    for (const claim of held) {
      if (how === 'run out') {
        // Without renewal it ends by itself, and its lease says so in time.
        session.expiries.set(claim, claim.validUntil, claim.ttl)
        this.unsettle(claim, claim.ttl)
      } else {
        session.upkeep.abandon(claim, 'its Holdfast was closed')
      }
    }
    this.look()
  }

  private finish(when: 'in time' | 'late'): void {
    const { session } = this
    this.phase = 'over'
    this.cancel()
    const now = session.env.mono()
    const left = [...this.unsettled].map(([{ name }, until]) => ({ name, within: until - now }))
    const leftToExpire = [...left, ...session.cleanup.left()].filter(({ within }) => within > 0)
    session.stop()
    const result = { cutShort: this.cutShort, leftToExpire: latest(leftToExpire) }
    this.resolve(this.closeTheStore(when, result))
  }

  /** It gets what is left of the time. */
  private async closeTheStore(when: 'in time' | 'late', result: CloseResult): Promise<CloseResult> {
    const closed = (async () => this.closeStore())()
    if (when === 'late') {
      // Nobody waits for it any more, and the result says what may be left.
      closed.catch(() => {})
      return result
    }
    await this.session.within(this.at - this.session.env.mono(), closed)
    return result
  }

  private setEnd(ms: number): void {
    const { waits, env } = this.session
    waits.set(this, env.mono() + ms, ms)
  }
}

function namesOf(claims: readonly Claim[]): readonly string[] {
  return [...new Set(claims.map(({ name }) => name))].sort()
}

/** One row for each name. */
function latest(locks: readonly LeftLock[]): readonly LeftLock[] {
  const byName = new Map<string, number>()
  for (const { name, within } of locks) byName.set(name, Math.max(within, byName.get(name) ?? 0))
  return [...byName].map(([name, within]) => ({ name, within: Math.ceil(within) }))
}
