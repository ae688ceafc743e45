import { describe, expect, it } from 'vitest'

import type { VoteAnswer } from '../../../../src/core/contract.ts'
import type { Driver } from '../../../../src/stores/redis/client/driver.ts'
import { RedisVoter } from '../../../../src/stores/redis/votes/store.ts'

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
  const voter = new RedisVoter(link as unknown as Driver, 'hf')
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

describe('a vote that is answered when its time is up', () => {
  const REF = { name: 'x', id: 'a.1', attempt: 1 }
  const RENEWAL = {
    ...REF,
    owner: 'test',
    ttl: 1_000,
    probation: 0,
    token: 1_794_967_306_000_000n,
    top: 1_794_967_306_000_000n,
    tokens: 0,
    mode: 'keep',
  } as const
  const late = async () => {
    const all = started()
    expect((await all.voter.vote(VOTE, 1)).kind).toBe('unknown')
    return all
  }
  const answered = async (link: FakeLink): Promise<readonly string[]> => {
    const before = link.commands.length
    link.sent[0]?.answer(1_794_967_306_000_000)
    await tick()
    return link.commands.slice(before)
  }

  it('is given back', async () => {
    const { link, voter } = await late()
    expect(await answered(link)).toEqual(['evalsha'])
    voter.close()
  })

  it('is not taken from the renewal behind it, which counts', async () => {
    const { link, voter } = await late()
    const renewed = voter.extend([RENEWAL], 1_000)
    expect(await answered(link)).toEqual([])
    link.sent[1]?.answer([1])
    expect(await renewed).toEqual([{ kind: 'renewed', contended: false }])
    voter.close()
  })

  it.each([
    ['another attempt', { ...RENEWAL, attempt: 2 }],
    ['another name', { ...RENEWAL, name: 'y' }],
  ])('is given back if the renewal behind it is of %s', async (_, renewal) => {
    const { link, voter } = await late()
    const renewed = voter.extend([renewal], 1_000)
    expect(await answered(link)).toEqual(['evalsha'])
    voter.close()
    await renewed
  })

  describe('by a release of which the server did not know the script', () => {
    const givenBack = async () => {
      const all = await late()
      expect(await answered(all.link)).toEqual(['evalsha'])
      return all
    }
    const notKnown = async (link: FakeLink): Promise<readonly string[]> => {
      const before = link.commands.length
      link.sent[1]?.fail(new Error('NOSCRIPT No matching script.'))
      await tick()
      return link.commands.slice(before)
    }

    it('is given back by its text', async () => {
      const { link, voter } = await givenBack()
      expect(await notKnown(link)).toEqual(['eval'])
      voter.close()
    })

    it('is not taken from a renewal that has overtaken it, which counts', async () => {
      const { link, voter } = await givenBack()
      const renewed = voter.extend([RENEWAL], 1_000)
      expect(await notKnown(link)).toEqual(['script'])
      link.sent[2]?.answer([1])
      expect(await renewed).toEqual([{ kind: 'renewed', contended: false }])
      voter.close()
    })

    it('is given back if its claim is over since', async () => {
      const { link, voter } = await givenBack()
      const renewed = voter.extend([RENEWAL], 1_000)
      const gone = voter.release(REF, false, 1_000)
      expect(await notKnown(link)).toEqual(['eval'])
      voter.close()
      await Promise.all([renewed, gone])
    })
  })

  it('is given back if its claim is over since', async () => {
    const { link, voter } = await late()
    const renewed = voter.extend([RENEWAL], 1_000)
    const gone = voter.release(REF, false, 1_000)
    expect(await answered(link)).toEqual(['evalsha'])
    voter.close()
    await Promise.all([renewed, gone])
  })
})

describe('a vote of which the server did not know the script', () => {
  const REF = { name: 'x', id: 'a.1', attempt: 1 }
  const noScript = new Error('NOSCRIPT No matching script.')

  it('is sent again while it is wanted', async () => {
    const { link, voter } = started()
    const answer = voter.vote(VOTE, 1_000)
    link.sent[0]?.fail(noScript)
    await tick()
    expect(link.commands).toEqual(['evalsha', 'eval'])
    link.sent[1]?.answer(1_794_967_306_000_000)
    expect((await answer).kind).toBe('granted')
    voter.close()
  })

  it.each([
    ['released', (voter: RedisVoter) => voter.release(REF, false, 1_000)],
    [
      'released whatever the attempt',
      (voter: RedisVoter) => voter.release({ ...REF, attempt: 0 }, false, 1_000),
    ],
    ['withdrawn', (voter: RedisVoter) => voter.withdraw(REF, 1_000)],
  ])('is not sent behind its own release: %s', async (_, giveUp) => {
    const { link, voter } = started()
    const answer = voter.vote(VOTE, 1_000)
    const gone = giveUp(voter)
    link.sent[0]?.fail(noScript)
    await tick()
    expect(link.commands).toEqual(['evalsha', 'evalsha', 'script'])
    expect((await answer).kind).toBe('unknown')
    voter.close()
    await gone
  })

  it('is sent behind the release of another one', async () => {
    const { link, voter } = started()
    const answer = voter.vote(VOTE, 1_000)
    const gone = voter.release({ ...REF, attempt: 7 }, false, 1_000)
    link.sent[0]?.fail(noScript)
    await tick()
    expect(link.commands).toEqual(['evalsha', 'evalsha', 'eval'])
    voter.close()
    await Promise.all([answer, gone])
  })

  it('is not sent on another connection', async () => {
    const { link, voter } = started()
    const answer = voter.vote(VOTE, 1_000)
    link.tell(false)
    link.tell(true)
    link.sent[0]?.fail(noScript)
    await tick()
    expect(link.commands).toEqual(['evalsha', 'script'])
    expect((await answer).kind).toBe('unknown')
    voter.close()
  })
})

/** `commandTimeout` of ioredis: the driver fails the command, and sends it all the same with the next connection. */
describe('a vote that the driver has failed and not forgotten', () => {
  const REF = { name: 'x', id: 'a.1', attempt: 1 }
  const lost = async () => {
    const all = started()
    const answer = all.voter.vote(VOTE, 1_000)
    all.link.sent[0]?.fail(new Error('Command timed out'))
    expect((await answer).kind).toBe('unknown')
    all.link.tell(false)
    return all
  }

  it('is given back on the next connection, if it was given up without one', async () => {
    const { link, voter } = await lost()
    expect((await voter.release(REF, false, 1_000)).kind).toBe('unknown')
    expect(link.commands).toEqual(['evalsha'])
    link.tell(true)
    expect(link.commands).toEqual(['evalsha', 'evalsha'])
    link.tell(false)
    link.tell(true)
    expect(link.commands).toHaveLength(2)
    voter.close()
  })

  it('is left alone while it is wanted', async () => {
    const { link, voter } = await lost()
    link.tell(true)
    expect(link.commands).toEqual(['evalsha'])
    // Whatever is answered now was sent behind it.
    const look = voter.inspect('x', 1_000)
    link.sent[1]?.answer([])
    await look
    link.tell(false)
    expect((await voter.release(REF, false, 1_000)).kind).toBe('unknown')
    link.tell(true)
    expect(link.commands).toEqual(['evalsha', 'evalsha'])
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
