import type { VoteRef } from '../../core/contract.ts'
import type { Quorum } from './quorum.ts'

export interface AgreementTerms {
  readonly ref: VoteRef
  readonly count: number
  /** What the block rests on; see ConfirmRequest. `null`: on itself, for it is the first one. */
  readonly base: bigint | null
  readonly timeout: number
}

/**
 * How stores agree on one block of tokens: each proposes what it set apart. As soon as a majority has, the highest
 * proposal counts; stores that proposed less are asked to accept it. In the usual case all propose the same, and there is
 * nothing to ask.
 */
export class Agreement {
  private readonly quorum: Quorum
  private readonly terms: AgreementTerms
  private readonly settle: (token: bigint | null) => void
  private readonly proposals: (bigint | undefined)[] = []
  private proposed = 0
  private accepted = 0
  /** Stores that may still propose or accept. */
  private open: number
  private token: bigint | null = null
  private settled = false
  /** Stores that answer at once must not decide before all proposals have been looked at. */
  private choosing = false

  constructor(quorum: Quorum, terms: AgreementTerms, settle: (token: bigint | null) => void) {
    this.quorum = quorum
    this.terms = terms
    this.settle = settle
    this.open = quorum.nodes.length
  }

  propose(at: number, token: bigint): void {
    if (this.settled) return
    this.proposals[at] = token
    this.proposed++
    this.open--
    if (this.token !== null) this.weigh(at, token)
    else if (this.proposed >= this.quorum.majority) this.choose()
    this.decide()
  }

  /** A store that will not take part. */
  decline(): void {
    this.open--
    this.decide()
  }

  private choose(): void {
    const { proposals } = this
    let highest = 0n
    for (const token of proposals) if (token !== undefined && token > highest) highest = token
    this.token = highest
    this.choosing = true
    for (let at = 0; at < proposals.length; at++) {
      const token = proposals[at]
      if (token !== undefined) this.weigh(at, token)
    }
    this.choosing = false
  }

  private weigh(at: number, proposal: bigint): void {
    const { token } = this
    if (token === null || proposal > token) return
    if (proposal === token) {
      this.accepted++
      return
    }
    const { ref, count, base, timeout } = this.terms
    const request = { name: ref.name, id: ref.id, attempt: ref.attempt, base: base ?? token, token, count }
    this.open++
    this.quorum.askKnown(
      at,
      (voter) => voter.confirm(request, timeout),
      ({ kind }) => {
        this.open--
        if (kind === 'confirmed') this.accepted++
        this.decide()
      },
    )
  }

  private decide(): void {
    if (this.settled || this.choosing) return
    const { majority } = this.quorum
    if (this.token !== null && this.accepted >= majority) {
      this.settled = true
      return this.settle(this.token)
    }
    const possible = this.token === null ? this.proposed : this.accepted
    if (possible + this.open >= majority) return
    this.settled = true
    this.settle(null)
  }
}
