import { describe, expect, it, vi } from 'vitest'

import { Call } from '../../../../src/stores/sql/client.ts'
import { Lending } from '../../../../src/stores/sql/lending.ts'
import { Lines, linesOn } from '../../../../src/stores/sql/lines.ts'
import type { Answer, Entry, Outcome } from '../../../../src/stores/sql/lines.ts'

interface Led {
  readonly by: Call
  readonly ids: readonly string[]
  readonly end: (error?: Error) => void
}

/** Sends commands with these ids, and keeps who led what. */
function world(lines = new Lines()): {
  readonly led: Led[]
  readonly send: (id: string, call?: Call, name?: string) => Promise<Answer>
} {
  const led: Led[] = []
  const idOf = ({ command }: Entry): string => ('claim' in command ? command.claim.id : '')
  const send = (id: string, call = new Call(), name = 'name'): Promise<Answer> =>
    lines.send(name, { command: { kind: 'withdraw', claim: { name, id } }, call }, (entries) => {
      const ids = entries.map(idOf)
      return new Promise<readonly Outcome[]>((resolve, reject) => {
        const answers = ids.map((one) => ({ answer: { kind: 'released', of: one } as Answer }))
        led.push({
          by: call,
          ids,
          end: (error) => (error === undefined ? resolve(answers) : reject(error)),
        })
      })
    })
  return { led, send }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

describe('commands of one process on one name', () => {
  it('go together while one is under way, led by who has the most time; other names wait for nobody', async () => {
    const { led, send } = world()
    const [short, long] = [new Call(100), new Call(900)]
    const all = [send('a'), send('b', short), send('c', long), send('d', short), send('z', short, 'other')]
    expect(led.map(({ ids }) => ids)).toEqual([['a'], ['z']])
    led[0]?.end()
    await turns()
    expect(led[2]).toMatchObject({ by: long, ids: ['b', 'c', 'd'] })
    for (const { end } of led) end()
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd', 'z'].map((of) => ({ kind: 'released', of })))
    // The line is gone: the next one goes alone.
    const last = send('e')
    led[3]?.end()
    expect(await last).toMatchObject({ of: 'e' })
  })

  it('leave behind those whose time is over, and share what became of their leader', async () => {
    const { led, send } = world()
    const late = new Call()
    const first = send('a')
    send('late', late).catch(() => {})
    const others = Promise.allSettled([send('b'), send('c')])
    late.expire()
    led[0]?.end(new Error('gone'))
    await expect(first).rejects.toThrow('gone')
    await turns()
    expect(led[1]?.ids).toEqual(['b', 'c'])
    led[1]?.end(new Error('gone, too'))
    expect((await others).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })

  it('do not wait for ever for one that hears nothing', async () => {
    const { led, send } = world()
    const hung = send('hung')
    const others = [send('a'), send('b')]
    await vi.waitFor(() => expect(led[1]?.ids).toEqual(['a', 'b']))
    led[1]?.end()
    expect(await Promise.all(others)).toHaveLength(2)
    led[0]?.end()
    expect(await hung).toMatchObject({ of: 'hung' })
  })

  it('stand in one line for all stores on a pool with the same table', () => {
    const pool = {}
    expect(linesOn(pool, 'table')).toBe(linesOn(pool, 'table'))
    expect(linesOn(pool, 'table')).not.toBe(linesOn(pool, 'other'))
    expect(linesOn(pool, 'table')).not.toBe(linesOn({}, 'table'))
  })
})

describe('a connection in the hands of a call', () => {
  const lend = (): { readonly call: Call; readonly lending: Lending; readonly ended: string[] } => {
    const [call, ended] = [new Call(), [] as string[]]
    const ways = { back: () => void ended.push('back'), destroy: () => void ended.push('destroyed') }
    return { call, lending: new Lending(call, ways), ended }
  }

  it('goes back when the time is over and no answer is due', () => {
    const { call, lending, ended } = lend()
    call.expire()
    lending.end()
    expect(ended).toEqual(['back'])
  })

  it('goes back when the answer comes a moment too late', async () => {
    const { call, lending, ended } = lend()
    let answer = (): void => {}
    const sent = call.send(() => new Promise<void>((resolve) => (answer = resolve)))
    call.expire()
    expect(ended).toEqual([])
    answer()
    await sent
    lending.end()
    expect(ended).toEqual(['back'])
    await expect(call.send(() => Promise.resolve())).rejects.toThrow('in time')
  })

  it('is destroyed when none comes', async () => {
    const { call, lending, ended } = lend()
    call.send(() => new Promise(() => {})).catch(() => {})
    call.expire()
    await vi.waitFor(() => expect(ended).toEqual(['destroyed']))
    lending.end()
    expect(ended).toEqual(['destroyed'])
  })
})
