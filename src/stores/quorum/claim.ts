import type {
  Busy,
  ClaimAnswer,
  ClaimRequest,
  MaybePromise,
  VoteAnswer,
  VoteRequest,
} from '../../core/contract.ts'
import { Agreement } from './agreement.ts'
import { isLate, noQuorum, stateOf } from './failure.ts'
import type { Grants } from './grants.ts'
import type { Quorum } from './quorum.ts'

export interface AttemptTerms {
  readonly attempt: number
  readonly interest: boolean
  readonly timeout: number
  /** Called when the outcome is known, before anybody hears of it. */
  readonly over: () => void
}

const FURTHER_AWAY =
  '. Servers that are further away than that need a larger nodeTimeout: several round trips'

/**
 * One round of votes for a claim. Ends as soon as the outcome is certain, whoever has not answered by then; if it is not
 * granted, everything that was or may have been given is given back.
 */
export class Attempt {
  private readonly request: VoteRequest
  private readonly quorum: Quorum
  private readonly grants: Grants
  private readonly timeout: number
  private readonly over: () => void
  private readonly agreement: Agreement
  /** By node. */
  private readonly answers: (VoteAnswer | undefined)[] = []
  private contended = false
  private answer: ClaimAnswer | null = null
  private resolve: ((answer: ClaimAnswer) => void) | null = null

  constructor(quorum: Quorum, grants: Grants, request: ClaimRequest, terms: AttemptTerms) {
    this.quorum = quorum
    this.grants = grants
    const { name, id, ttl, tokens, owner } = request
    const { attempt, interest } = terms
    const { probation } = quorum.settings
    this.request = Object.freeze({ name, id, attempt, ttl, tokens, owner, probation, interest })
    this.timeout = terms.timeout
    this.over = terms.over
    this.agreement = new Agreement(
      quorum,
      { ref: this.request, count: request.tokens, base: null, timeout: terms.timeout },
      (token) => this.settle(token),
    )
  }

  run(): MaybePromise<ClaimAnswer> {
    const { nodes, short } = this.quorum
    for (const node of nodes) node.vote(this.request, this.timeout, short, this.heard)
    return this.answer ?? new Promise((resolve) => (this.resolve = resolve))
  }

  private readonly heard = (answer: VoteAnswer, at: number): void => {
    this.answers[at] = answer
    if (answer.kind === 'granted') {
      // It came too late to count. A lock that was held and released meanwhile is another matter: that follows its vote.
      if (this.answer !== null && this.answer.kind !== 'held') return this.giveBack(at)
      this.contended ||= answer.contended
      this.agreement.propose(at, answer.token)
    } else this.agreement.decline()
  }

  private settle(token: bigint | null): void {
    if (token !== null) {
      const { name, id, attempt, owner, tokens: count, ttl } = this.request
      this.grants.add({ name, id, attempt, owner, token, count, endsAt: this.grants.endOf(ttl) })
      return this.finish({ kind: 'held', token, count, contended: this.contended })
    }
    const answer = this.lost()
    // The others follow when the answer is out: they must not hold it up.
    this.finish(answer)
    for (const { at } of this.quorum.nodes) {
      const kind = this.answers[at]?.kind
      if (kind !== 'busy' && kind !== 'not-ready') this.giveBack(at)
    }
  }

  private finish(answer: ClaimAnswer): void {
    this.answer = answer
    this.over()
    this.resolve?.(answer)
  }

  /** Others have it, or too few stores are there to say. */
  private lost(): ClaimAnswer {
    const { nodes, majority } = this.quorum
    const down = this.answers.filter(
      (given) => given?.kind === 'unknown' || given?.kind === 'not-ready',
    ).length
    if (nodes.length - down >= majority) return this.busy()
    return noQuorum(
      nodes.map(({ label }, at) => stateOf(label, this.answers[at])),
      majority,
      this.answers.some(isLate) ? FURTHER_AWAY : '',
    )
  }

  /** Until so many leases have ended that the rest is a majority. */
  private busy(): Busy {
    const ends: number[] = []
    let free = 0
    for (const given of this.answers) {
      if (given?.kind === 'granted') free++
      else if (given?.kind === 'busy' && given.retryAfter !== undefined) ends.push(given.retryAfter)
    }
    const retryAfter = ends.sort((a, b) => a - b)[this.quorum.majority - free - 1]
    return retryAfter === undefined ? { kind: 'busy' } : { kind: 'busy', retryAfter }
  }

  private giveBack(at: number): void {
    // Nobody waits for the answer: a store that does not hear of it lets the lease run out.
    const { name, id, attempt } = this.request
    this.quorum.ask(
      at,
      (voter) => voter.release({ name, id, attempt }, false, this.timeout),
      () => {},
      true,
    )
  }
}
