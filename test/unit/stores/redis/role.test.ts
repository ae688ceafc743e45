import { describe, expect, it } from 'vitest'

import type { Unknown } from '../../../../src/core/contract.ts'
import { Command } from '../../../../src/stores/redis/command.ts'
import { Commands } from '../../../../src/stores/redis/commands.ts'
import type { Driver } from '../../../../src/stores/redis/client/driver.ts'
import { readClaim, readReleased } from '../../../../src/stores/redis/wire.ts'
import { Requests } from '../../../../src/stores/redis/requests.ts'

const PRIMARY = 'role:master\r\n'
const TAKES_WRITES = 'role:slave\r\nslave_read_only:0\r\n'

/** A driver that is told when to answer. */
class FakeLink {
  readonly cluster = false
  readonly keyPrefix = ''
  readonly sent: { command: string; answer: (reply: unknown) => void; fail: (why: Error) => void }[] = []
  resets = 0
  private readonly changes = new Set<() => void>()

  ready = (): boolean => true
  ended = (): boolean => false
  onReady = (): (() => void) => () => {}
  onConnectionChange = (listener: () => void): (() => void) => {
    this.changes.add(listener)
    return () => this.changes.delete(listener)
  }
  nodeOf = (): string => ''
  reset = (): void => void this.resets++
  evalsha = (): Promise<unknown> => this.send('evalsha')
  primaries = (): Promise<unknown> =>
    Promise.resolve([{ send: ([command]: string[]) => this.send(command ?? '') }])

  move(): void {
    for (const changed of this.changes) changed()
  }

  last(command: string): FakeLink['sent'][number] {
    const found = this.sent.findLast((one) => one.command === command)
    if (found === undefined) throw new Error(`${command} was not sent`)
    return found
  }

  private send(command: string): Promise<unknown> {
    return new Promise((answer, fail) => this.sent.push({ command, answer, fail }))
  }
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function started() {
  const link = new FakeLink()
  const commands = new Commands(new Requests(link as unknown as Driver), { prefix: 'hf' })
  const withdraw = (): Promise<{ readonly kind: string } | Unknown> =>
    commands.send(new Command({ name: 'x', id: 'ann.1' }, 'w', '', readReleased), 5_000)
  return { link, commands, withdraw }
}

describe('an answer of a server that has not said what it is', () => {
  it.each([
    ['a primary', PRIMARY, 'released', 0],
    ['a replica that takes writes', TAKES_WRITES, 'unknown', 1],
  ])('is worth what it says then: %s', async (_, info, expected, resets) => {
    const { link, commands, withdraw } = started()
    const answer = withdraw()
    await tick()
    link.last('evalsha').answer(1)
    link.last('info').answer(info)
    expect((await answer).kind).toBe(expected)
    expect(link.resets).toBe(resets)
    commands.close()
  })

  it('is worth nothing when the connection is another one then', async () => {
    const { link, commands, withdraw } = started()
    const answer = withdraw()
    await tick()
    link.last('evalsha').answer(1)
    await tick()
    link.move()
    await tick()
    // What the new server is says nothing about the one that answered.
    link.last('info').answer(PRIMARY)
    expect(await answer).toMatchObject({ kind: 'unknown' })
    // Nor is anything wrong with the new connection.
    expect(link.resets).toBe(0)
    commands.close()
  })

  it('leaves no claim behind that was granted late, and given up before', async () => {
    const { link, commands, withdraw } = started()
    const claim = new Command({ name: 'x', id: 'ann.1' }, 'Q', '1 1 1 1000 500 ann', readClaim)
    expect(await commands.send(claim, 1)).toMatchObject({ kind: 'unknown' })
    const [late] = link.sent
    const given = withdraw()
    late?.answer('1700000000000000')
    await tick()
    const before = link.sent.length
    link.move()
    // To the new connection: the withdrawal that was asked for may have been too early, or lost.
    expect(link.sent.slice(before)).toMatchObject([{ command: 'evalsha' }])
    for (const { answer } of link.sent.slice(1)) answer(0)
    link.last('info').answer(PRIMARY)
    await given
    commands.close()
  })

  it.each([
    ['asked', async (link: FakeLink) => Promise.resolve(link.last('info').answer('QUEUED'))],
    [
      'asked in the other way',
      async (link: FakeLink) => {
        link.last('info').fail(new Error('NOPERM no'))
        await tick()
        link.last('role').answer(Buffer.from('QUEUED'))
      },
    ],
  ])("is not known where it was %s in a transaction of the client's owner", async (_, queue) => {
    const { link, commands, withdraw } = started()
    const answer = withdraw()
    await tick()
    link.last('evalsha').answer(1)
    await queue(link)
    expect((await answer).kind).toBe('unknown')
    // With the next command it is asked again.
    const next = withdraw()
    await tick()
    link.last('evalsha').answer(1)
    link.last('info').answer(TAKES_WRITES)
    expect((await next).kind).toBe('unknown')
    commands.close()
  })

  it.each(["unsupported command 'info'", 'ERR unknown command', 'NOPERM no', 'invalid request'])(
    'is believed where it cannot be asked: %s',
    async (refusal) => {
      const { link, commands, withdraw } = started()
      const answer = withdraw()
      await tick()
      link.last('evalsha').answer(1)
      link.last('info').fail(new Error(refusal))
      await tick()
      link.last('role').fail(new Error(refusal.replace('info', 'role')))
      expect((await answer).kind).toBe('released')
      commands.close()
    },
  )

  it.each(['BUSY Redis is busy running a script', 'LOADING Redis is loading', 'Connection is closed.'])(
    'is not known where it could not be asked now, and that is no reason to leave: %s',
    async (trouble) => {
      const { link, commands, withdraw } = started()
      const answer = withdraw()
      await tick()
      link.last('evalsha').answer(1)
      link.last('info').fail(new Error(trouble))
      expect((await answer).kind).toBe('unknown')
      expect(link.resets).toBe(0)
      commands.close()
    },
  )
})
