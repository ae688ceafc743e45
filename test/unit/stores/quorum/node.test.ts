import { describe, expect, it } from 'vitest'

import type { Unknown, VoteAnswer, Voter, VoteRequest } from '../../../../src/core/contract.ts'
import { systemClock } from '../../../../src/stores/quorum/clock.ts'
import { Node } from '../../../../src/stores/quorum/node.ts'
import { failed } from '../../../../src/stores/redis/failure.ts'

const request = (name: string): VoteRequest => ({
  name,
  id: 'a.1',
  attempt: 1,
  ttl: 1_000,
  tokens: 1,
  owner: 'test',
  probation: 0,
  interest: false,
})

/** A node whose answer about one name is this. */
function nodeThat(answers: Unknown): { node: Node; vote: (name: string) => VoteAnswer } {
  const granted = { kind: 'granted', token: 1n, count: 1, contended: false } as const
  const voter = { vote: ({ name }: VoteRequest) => (name === 'bad' ? answers : granted) }
  const node = new Node(voter as unknown as Voter, 'one', 0, { ...systemClock, now: () => 0 })
  node.server = 'one'
  const vote = (name: string): VoteAnswer => {
    let answer: VoteAnswer | undefined
    node.vote(request(name), 1_000, false, (given) => (answer = given))
    return answer as VoteAnswer
  }
  return { node, vote }
}

describe('a store of a quorum', () => {
  it.each([
    'WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:3.',
    'HFLAYOUT the votes are kept in layout 2, and this version of holdfast knows layout 1: update it',
    'ERR user_script:20: attempt to compare nil with number script: 1, on @user_script:20.',
  ])('votes on other names, if one cannot be read: %s', (message) => {
    const { node, vote } = nodeThat(failed(new Error(message)))
    expect(vote('bad').kind).toBe('unknown')
    expect(node.well).toBe(true)
    expect(vote('good').kind).toBe('granted')
  })

  it.each([
    "NOPERM this user has no permissions to run the 'evalsha' command",
    'NOPERM this user has no permissions to access the key script: 1, on @user_script:3.',
    "ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:3.",
    "READONLY You can't write against a read only replica. script: 1, on @user_script:3.",
    'OOM command not allowed when used memory > maxmemory. script: 1, on @user_script:3.',
    'no answer from the Redis server within 50 ms',
  ])('is left alone for a while otherwise: %s', (message) => {
    const { node, vote } = nodeThat(failed(new Error(message)))
    expect(vote('bad').kind).toBe('unknown')
    expect(node.well).toBe(false)
    expect(vote('good').kind).toBe('unknown')
  })
})
