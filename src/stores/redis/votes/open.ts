import type { VoteRef } from '../../../core/contract.ts'

/** What there is to know of a vote until the driver has let go of it. */
export interface OpenVote {
  readonly ref: VoteRef
  /** Its release is ahead of whatever is sent for it from now on. */
  givenUp: boolean
  /** A renewal is behind it: its claim is held, and the renewal may count on it. */
  renewed: boolean
  /** The driver will not tell what became of it, and may still send it (`commandTimeout` of ioredis). */
  untold: boolean
  /** The one before it of the same claim, if that is open too. */
  earlier: OpenVote | undefined
}

/**
 * Votes that the driver has not let go of. One that was given up meanwhile must not be sent any more. One that the driver has
 * failed, and sends all the same when there is a new connection, is given back behind it: without one, its release was not sent.
 */
export class OpenVotes {
  /** By id, the latest of each: of thousands that are open, a release looks at those of its own claim. */
  private readonly latest = new Map<string, OpenVote>()
  private readonly giveBack: (vote: OpenVote) => void
  private untold = 0

  constructor(giveBack: (vote: OpenVote) => void) {
    this.giveBack = giveBack
  }

  add(vote: OpenVote): void {
    vote.earlier = this.latest.get(vote.ref.id)
    this.latest.set(vote.ref.id, vote)
  }

  delete(vote: OpenVote): void {
    const latest = this.latest.get(vote.ref.id)
    if (latest === vote) {
      if (vote.earlier === undefined) this.latest.delete(vote.ref.id)
      else this.latest.set(vote.ref.id, vote.earlier)
    } else {
      let later = latest
      while (later !== undefined && later.earlier !== vote) later = later.earlier
      if (later === undefined) return
      later.earlier = vote.earlier
    }
    if (vote.untold) this.untold--
  }

  timedOut(vote: OpenVote): void {
    if (vote.untold || !this.of(vote.ref.id).includes(vote)) return
    vote.untold = true
    this.untold++
  }

  /** `attempt` 0: all of them. */
  giveUp({ name, id }: { readonly name: string; readonly id: string }, attempt: number): void {
    for (let vote = this.latest.get(id); vote !== undefined; vote = vote.earlier) {
      const { ref } = vote
      if (ref.name === name && (attempt === 0 || ref.attempt === attempt)) vote.givenUp = true
    }
  }

  /** What is renewed was granted by a majority, though this server has not answered yet. */
  renew({ name, id, attempt }: VoteRef): void {
    for (let vote = this.latest.get(id); vote !== undefined; vote = vote.earlier)
      if (vote.ref.name === name && vote.ref.attempt === attempt) vote.renewed = true
  }

  /** The driver has sent what it kept. `answered`: so has the server, and nothing of it is left to be sent. */
  sentAll(answered: boolean): void {
    if (this.untold === 0) return
    for (const id of this.latest.keys()) {
      for (const vote of this.of(id)) {
        if (!vote.untold || !(vote.givenUp || answered)) continue
        this.delete(vote)
        if (vote.givenUp) this.giveBack(vote)
      }
    }
  }

  private of(id: string): readonly OpenVote[] {
    const votes: OpenVote[] = []
    for (let vote = this.latest.get(id); vote !== undefined; vote = vote.earlier) votes.unshift(vote)
    return votes
  }
}
