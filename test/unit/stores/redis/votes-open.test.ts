import { describe, expect, it } from 'vitest'

import type { VoteRef } from '../../../../src/core/contract.ts'
import { OpenVotes } from '../../../../src/stores/redis/votes/open.ts'
import type { OpenVote } from '../../../../src/stores/redis/votes/open.ts'

/** An open vote that counts how often somebody looks whose it is. */
function voteOf(ref: VoteRef, looked = { times: 0 }): OpenVote {
  return {
    get ref() {
      looked.times++
      return ref
    },
    givenUp: false,
    renewed: false,
    untold: false,
    earlier: undefined,
  }
}

const refOf = (claim: number, attempt = 1): VoteRef => ({ name: 'x', id: `ann.${claim}`, attempt })

describe('votes that are open', () => {
  it('cost a release the same, however many there are', () => {
    const open = new OpenVotes(() => {})
    const looked = { times: 0 }
    const votes = Array.from({ length: 10_000 }, (_, claim) => voteOf(refOf(claim), looked))
    for (const vote of votes) open.add(vote)
    looked.times = 0
    open.giveUp(refOf(5_000), 1)
    expect(votes.filter(({ givenUp }) => givenUp)).toEqual([votes[5_000]])
    expect(looked.times).toBeLessThan(10)
  })

  it.each([
    ['one attempt', 2, [false, true, false]],
    ['all attempts', 0, [true, true, true]],
  ])('of one claim are given up: %s', (_, attempt, expected) => {
    const open = new OpenVotes(() => {})
    const votes = [1, 2, 3].map((each) => voteOf(refOf(1, each)))
    for (const vote of votes) open.add(vote)
    open.giveUp({ ...refOf(1), name: 'y' }, attempt)
    expect(votes.map(({ givenUp }) => givenUp)).toEqual([false, false, false])
    open.giveUp(refOf(1), attempt)
    expect(votes.map(({ givenUp }) => givenUp)).toEqual(expected)
  })

  it.each([[[1, 2, 3]], [[3, 2, 1]], [[2, 1, 3]], [[2, 3, 1]]])(
    'of one claim end in any order, and each once: %j',
    (order) => {
      const given: number[] = []
      const open = new OpenVotes(({ ref }) => given.push(ref.attempt))
      const votes = [1, 2, 3].map((each) => voteOf(refOf(1, each)))
      for (const vote of votes) open.add(vote)
      for (const [done, attempt] of order.entries()) {
        const vote = votes[attempt - 1] as OpenVote
        open.delete(vote)
        open.delete(vote)
        // What the driver has let go of does not come back.
        open.timedOut(vote)
        vote.givenUp = false
        open.giveUp(refOf(1), 0)
        expect(votes.filter(({ givenUp }) => givenUp)).toHaveLength(2 - done)
        for (const other of votes) other.givenUp = false
      }
      open.sentAll(true)
      expect(given).toEqual([])
    },
  )

  it('that the driver will not tell of are given back, those that were given up', () => {
    const given: number[] = []
    const open = new OpenVotes(({ ref }) => given.push(ref.attempt))
    const votes = [1, 2, 3, 4].map((each) => voteOf(refOf(1, each)))
    for (const vote of votes) open.add(vote)
    for (const vote of votes.slice(0, 3)) open.timedOut(vote)
    open.giveUp(refOf(1), 1)
    open.giveUp(refOf(1), 3)
    open.sentAll(false)
    expect(given).toEqual([1, 3])
    open.giveUp(refOf(1), 2)
    open.sentAll(true)
    expect(given).toEqual([1, 3, 2])
    open.sentAll(true)
    expect(given).toHaveLength(3)
  })
})
