import { describe, expect, it } from 'vitest'

import type { VoteAnswer } from '../../../../src/core/contract.ts'
import type { Link } from '../../../../src/stores/redis/link.ts'
import { RedisVoter } from '../../../../src/stores/redis/votes.ts'

const VOTE = {
  name: 'x',
  id: 'a.1',
  attempt: 1,
  ttl: 1_000,
  tokens: 1,
  owner: 'test',
  probation: 0,
  interest: false,
}

/** A driver that is told when to answer, and whether it is connected. */
class FakeLink {
  readonly cluster = false
  readonly keyPrefix = ''
  connected = true
  readonly sent: {
    readonly command: string
    answer: (reply: unknown) => void
    fail: (why: Error) => void
  }[] = []
  private changed: () => void = () => {}

  ready = (): boolean => this.connected
  onReady = (): (() => void) => () => {}
  onConnectionChange = (listener: () => void): (() => void) => {
    this.changed = listener
    return () => (this.changed = () => {})
  }
  notReadyBecause = (): undefined => undefined
  nodeOf = (): string => ''
  reset = (): void => {}
  evalsha = (): Promise<unknown> => this.send('evalsha')
  eval = (): Promise<unknown> => this.send('eval')
  hdel = (): Promise<unknown> => this.send('hdel')
  primaries = (): Promise<unknown> =>
    Promise.resolve([{ send: ([command]: string[]) => this.send(command ?? '') }])

  /** Each event as a driver tells it. */
  tell(connected: boolean): void {
    this.connected = connected
    this.changed()
  }

  get commands(): string[] {
    return this.sent.map(({ command }) => command)
  }

  private send(command: string): Promise<unknown> {
    return new Promise((answer, fail) => this.sent.push({ command, answer, fail }))
  }
}

const started = () => {
  const link = new FakeLink()
  const voter = new RedisVoter(link as unknown as Link, 'hf')
  const told: boolean[] = []
  voter.onMove((reachable) => told.push(reachable))
  return { link, voter, told }
}
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a vote that a driver sent again on another connection', () => {
  it.each([
    ['was lost and made', [false, true], [false, true]],
    ['was made without a word of its loss', [true], [false, true]],
  ])('does not count, and is given back, where the connection %s', async (_how, events, expected) => {
    const { link, voter, told } = started()
    let answer: VoteAnswer | undefined
    voter.voteThen(VOTE, 1_000, (given) => (answer = given))
    for (const connected of events) link.tell(connected)
    expect(told).toEqual(expected)
    link.sent[0]?.answer(1_794_967_306_000_000)
    await tick()
    expect(answer).toMatchObject({ kind: 'unknown' })
    expect(link.commands).toEqual(['evalsha', 'evalsha'])
    voter.close()
  })

  it('counts where there was no other', async () => {
    const { link, voter, told } = started()
    const answer = voter.vote(VOTE, 1_000)
    link.sent[0]?.answer(1_794_967_306_000_000)
    expect(await answer).toMatchObject({ kind: 'granted' })
    expect(told).toEqual([])
    voter.close()
  })
})

describe('a vote of which the server did not know the script', () => {
  it.each([
    [true, ['evalsha', 'eval']],
    [false, ['evalsha', 'script']],
  ])('is sent again while it is wanted: %s', async (wanted, commands) => {
    const { link, voter } = started()
    const answer = voter.vote({ ...VOTE, wanted: () => wanted }, 1_000)
    link.sent[0]?.fail(new Error('NOSCRIPT No matching script.'))
    await tick()
    expect(link.commands).toEqual(commands)
    link.sent[1]?.answer(wanted ? 1_794_967_306_000_000 : 'OK')
    expect((await answer).kind).toBe(wanted ? 'granted' : 'unknown')
    voter.close()
  })

  it('is not sent on another connection', async () => {
    const { link, voter } = started()
    const answer = voter.vote({ ...VOTE, wanted: () => true }, 1_000)
    link.tell(false)
    link.tell(true)
    link.sent[0]?.fail(new Error('NOSCRIPT No matching script.'))
    await tick()
    expect(link.commands).toEqual(['evalsha', 'script'])
    expect((await answer).kind).toBe('unknown')
    voter.close()
  })
})

it('does not say which server it is, if that was asked of two connections', async () => {
  const { link, voter } = started()
  const identity = voter.identify(0, 1_000)
  await tick()
  link.sent[0]?.answer('run_id:abc\r\n')
  link.tell(false)
  link.tell(true)
  for (let at = 1; at < 3; at++) {
    await tick()
    link.sent[at]?.answer(at === 1 ? 'OK' : 'y')
  }
  expect(await identity).toMatchObject({ kind: 'unknown' })
  voter.close()
})
