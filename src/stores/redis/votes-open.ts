import type { VoteRef } from '../../core/contract.ts'

/** What there is to know of a vote until the driver has let go of it. */
export interface OpenVote {
  readonly ref: VoteRef
  /** Its release is ahead of whatever is sent for it from now on. */
  givenUp: boolean
  /** The driver will not tell what became of it, and may still send it (`commandTimeout` of ioredis). */
  untold: boolean
}

/**
 * Votes that the driver has not let go of. One that was given up meanwhile must not be sent any more. One that the driver has
 * failed, and sends all the same when there is a new connection, is given back behind it: without one, its release was not sent.
 */
export class OpenVotes {
  private readonly votes = new Set<OpenVote>()
  private readonly giveBack: (ref: VoteRef) => void
  private untold = 0

  constructor(giveBack: (ref: VoteRef) => void) {
    this.giveBack = giveBack
  }

  add(vote: OpenVote): void {
    this.votes.add(vote)
  }

  delete(vote: OpenVote): void {
    if (this.votes.delete(vote) && vote.untold) this.untold--
  }

  timedOut(vote: OpenVote): void {
    if (!this.votes.has(vote) || vote.untold) return
    vote.untold = true
    this.untold++
  }

  /** `attempt` 0: all of them. */
  giveUp({ name, id }: { readonly name: string; readonly id: string }, attempt: number): void {
    for (const vote of this.votes) {
      const { ref } = vote
      if (ref.id === id && ref.name === name && (attempt === 0 || ref.attempt === attempt))
        vote.givenUp = true
    }
  }

  /** The driver has sent what it kept. `answered`: so has the server, and nothing of it is left to be sent. */
  sentAll(answered: boolean): void {
    if (this.untold === 0) return
    for (const vote of this.votes) {
      if (!vote.untold || !(vote.givenUp || answered)) continue
      this.delete(vote)
      if (vote.givenUp) this.giveBack(vote.ref)
    }
  }
}
