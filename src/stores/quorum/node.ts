import { backOff } from '../../core/back-off.ts'
import type {
  DirectVoter,
  MaybePromise,
  ReleaseAnswer,
  Unknown,
  VoteAnswer,
  Voter,
  VoteRelease,
  VoteRequest,
} from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import type { QuorumClock } from './clock.ts'

/** How long a store that did not answer is left alone, growing with every failure in a row. */
const PAUSE_MS = { first: 20, longest: 1000 }
/** Requests for new locks that may be under way to a store that does not answer, where nothing works without it. */
const MOST_IN_VAIN = 64
/** Releases beyond those that are kept for it until it answers. */
const MOST_OWED = 16_384

interface Owed {
  readonly ref: VoteRelease
  readonly timeout: number
}

const UNCHECKED = unknown(new Error('has not said yet which server it is'))

/**
 * One store of a quorum. While it does not answer, a request now and then tries whether it is back; all others are
 * answered at once: a store that is down costs nothing, and no queue grows before it.
 */
export class Node {
  readonly voter: Voter
  private readonly direct: DirectVoter | null
  readonly label: string
  /** Its place among the others. */
  readonly at: number
  /** Which server it is; unknown until it has said so, and again when it may have become another one. */
  server: string | null = null
  private readonly clock: QuorumClock
  private problem: Unknown | null = null
  private underWay = 0
  private failures = 0
  private askAgainAt = 0
  /** One slow answer, and thousands of releases right behind it: what is not told would stay there for its whole ttl. */
  private owed: Owed[] = []

  constructor(voter: Voter, label: string, at: number, clock: QuorumClock) {
    this.voter = voter
    this.direct = isDirect(voter) ? voter : null
    this.at = at
    this.label = label
    this.clock = clock
  }

  get well(): boolean {
    return this.problem === null
  }

  /** What it said last, as far as it matters. */
  get state(): { readonly kind: string } {
    return this.problem ?? { kind: 'well' }
  }

  /**
   * Hands the answer over when it comes, or at once. `needed`: it has to hear of it, or without it there is no majority:
   * it is asked even if it does not answer. Callbacks and not promises: an acquire makes five of these, and a release too.
   */
  ask<T extends { readonly kind: string }>(
    call: (voter: Voter, at: number) => MaybePromise<T>,
    needed: boolean,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    const { at, problem } = this
    if (problem !== null && !this.mayTry(needed)) return heard(problem, at)
    this.send(call, heard)
  }

  private send<T extends { readonly kind: string }>(
    call: (voter: Voter, at: number) => MaybePromise<T>,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    const { at } = this
    let answer: MaybePromise<T>
    try {
      answer = call(this.voter, at)
    } catch (cause) {
      return heard(this.failed(unknown(cause)), at)
    }
    if (!(answer instanceof Promise)) return heard(this.heard(answer), at)
    this.underWay++
    answer.then(
      (settled) => {
        this.underWay--
        heard(this.heard(settled), at)
      },
      (cause: unknown) => {
        this.underWay--
        heard(this.failed(unknown(cause)), at)
      },
    )
  }

  /**
   * As `ask`, where the answer counts: only if it is known whose it is. What is held is asked about however many votes are under
   * way: where too many at once are late, the store seems to be down, and the leases would end for that.
   */
  askKnown<T extends { readonly kind: string }>(
    call: (voter: Voter, at: number) => MaybePromise<T>,
    needed: boolean,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    if (this.server === null) heard(this.problem ?? UNCHECKED, this.at)
    else if (needed) this.send(call, heard)
    else this.ask(call, needed, heard)
  }

  vote(
    request: VoteRequest,
    timeout: number,
    needed: boolean,
    heard: (answer: VoteAnswer, at: number) => void,
  ): void {
    const { direct } = this
    if (this.server === null) return heard(this.problem ?? UNCHECKED, this.at)
    if (direct === null) return this.ask<VoteAnswer>((voter) => voter.vote(request, timeout), needed, heard)
    if (this.problem !== null && !this.mayTry(needed)) return heard(this.problem, this.at)
    direct.voteThen(request, timeout, this.whenHeard(heard))
  }

  /** It has to hear of this one, if need be when it answers again. */
  release(ref: VoteRelease, timeout: number, heard: (answer: ReleaseAnswer, at: number) => void): void {
    const { direct } = this
    if (this.problem !== null && !this.mayTry(true)) {
      // Without an attempt it would release what the same claim is granted by then.
      if (ref.attempt !== 0 && this.owed.length < MOST_OWED) this.owed.push({ ref, timeout })
      return heard(this.problem, this.at)
    }
    if (direct === null)
      return this.ask<ReleaseAnswer>((voter) => voter.release(ref, true, timeout), true, heard)
    direct.releaseThen(ref, true, timeout, this.whenHeard(heard))
  }

  private whenHeard<T extends { readonly kind: string }>(
    heard: (answer: T, at: number) => void,
  ): (answer: T) => void {
    this.underWay++
    return (answer) => {
      this.underWay--
      heard(this.heard(answer), this.at)
    }
  }

  private mayTry(needed: boolean): boolean {
    if (needed) return this.underWay < MOST_IN_VAIN
    return this.underWay === 0 && this.clock.now() >= this.askAgainAt
  }

  private heard<T extends { readonly kind: string }>(answer: T): T {
    if (answer.kind === 'unknown' && !isOfName(answer)) this.failed(answer as unknown as Unknown)
    else if (this.problem !== null) {
      this.problem = null
      this.failures = 0
      for (const { ref, timeout } of this.owed.splice(0)) this.release(ref, timeout, () => {})
    }
    return answer
  }

  private failed(problem: Unknown): Unknown {
    this.problem = problem
    const pause = backOff(this.failures, PAUSE_MS)
    if (pause < PAUSE_MS.longest) this.failures++
    this.askAgainAt = this.clock.now() + pause
    return problem
  }
}

/** It has answered: with one name something is wrong, and nothing with the store. */
function isOfName(answer: object): boolean {
  return 'scope' in answer && answer.scope === 'name'
}

function isDirect(voter: Voter): voter is DirectVoter {
  return 'voteThen' in voter
}
