import { describe, expect, it } from 'vitest'

import { Requests } from '../../../src/runtime/requests.ts'
import { CLAIM, RENEW } from '../../../src/core/answers.ts'
import { Holdfast } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed } from '../testkit/lesser-stores.ts'

/** Requests of a store that may take a second for each, with what became of them. */
function open() {
  const settled: [answer: unknown, atOnce: boolean][] = []
  const counts = { first: 0, answers: 0 }
  const requests = new Requests({
    store: 'theirs',
    timeout: 1_000,
    onFirst: () => counts.first++,
    onAnswer: () => counts.answers++,
  })
  const ask = (call: () => unknown): void =>
    requests.ask(CLAIM, call as never, (answer, atOnce) => settled.push([answer, atOnce]))
  return { requests, settled, counts, ask }
}

async function warned(act: () => Promise<void>): Promise<string[]> {
  const warnings: string[] = []
  const hear = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', hear)
  await act()
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', hear)
  return warnings
}

const turns = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

describe('a request', () => {
  it('that is answered at once is none that is open', () => {
    const { requests, settled, counts, ask } = open()
    ask(() => ({ kind: 'busy' }))
    expect(settled).toEqual([[{ kind: 'busy' }, true]])
    expect([requests.size, counts]).toEqual([0, { first: 0, answers: 0 }])
  })

  it('is open until it is answered, and the first of them is told', async () => {
    const { requests, settled, counts, ask } = open()
    ask(() => Promise.resolve({ kind: 'busy' }))
    ask(() => Promise.resolve({ kind: 'queued' }))
    expect([requests.size, counts.first, settled]).toEqual([2, 1, []])
    await turns()
    expect(settled).toEqual([
      [{ kind: 'busy' }, false],
      [{ kind: 'queued' }, false],
    ])
    expect([requests.size, counts]).toEqual([0, { first: 1, answers: 2 }])
    ask(() => Promise.resolve({ kind: 'busy' }))
    expect(counts.first).toBe(2)
    await turns()
  })

  it('that is never answered is given up after twice its time and a second, counted in looks', async () => {
    const { requests, settled, ask } = open()
    const heard = await warned(async () => {
      let late = (_answer: unknown): void => {}
      ask(() => new Promise((resolve) => (late = resolve)))
      for (let looks = 0; looks < 6; looks++) requests.look()
      ask(() => new Promise(() => {}))
      expect(settled).toEqual([])
      requests.look()
      expect(settled).toMatchObject([
        [{ kind: 'unknown', cause: { code: 'STORE_BROKEN', method: 'claim' } }, false],
      ])
      expect(requests.size).toBe(1)
      late({ kind: 'busy' })
      await turns()
      expect(settled).toHaveLength(1)
    })
    expect(heard).toMatchObject([expect.stringContaining('claim() did not answer within 1000 ms, nor later')])
  })

  it('that meets a broken store is told by its method, once for each', async () => {
    const { settled, ask, requests } = open()
    const heard = await warned(async () => {
      ask(() => {
        throw new Error('oops')
      })
      ask(() => undefined)
      ask(() => Promise.reject(new Error('later')))
      // eslint-disable-next-line unicorn/no-thenable -- a promise of another library
      ask(() => ({ then: (done: (value: unknown) => void) => done(7) }))
      requests.ask(RENEW, (() => 7) as never, (answer, atOnce) => settled.push([answer, atOnce]))
      await turns()
    })
    expect(settled.map(([answer]) => (answer as { cause: Error }).cause.message.replace(/\..*/, ''))).toEqual(
      [
        'The theirs store is broken: claim() threw: oops',
        'The theirs store is broken: claim() answered undefined',
        'The theirs store is broken: renew() answered 7',
        'The theirs store is broken: claim() rejected: later',
        'The theirs store is broken: claim() answered 7',
      ],
    )
    // What it throws may be gone the next time; what it answers will not.
    expect(settled.map(([answer]) => (answer as { retryable?: boolean }).retryable)).toEqual([
      undefined,
      false,
      false,
      undefined,
      false,
    ])
    expect(settled.map(([, atOnce]) => atOnce)).toEqual([true, true, true, false, false])
    expect(heard).toHaveLength(2)
  })
})

describe('a claim that is answered with nonsense', () => {
  it('fails at once, and is not asked for again', async () => {
    const env = new VirtualEnv()
    let asked = 0
    const store = changed(memoryStore({ now: () => env.instant() }), {
      claim: () => (asked++, Promise.resolve({ kind: 'OK' } as never)),
    })
    const holdfast = new Holdfast(store, { env })
    await expect(env.until(holdfast.mutex('x').acquire({ wait: 20_000 }))).rejects.toMatchObject({
      code: 'STORE_BROKEN',
    })
    expect([asked, env.mono() < 1_000]).toEqual([1, true])
    await env.until(holdfast.close())
  })
})
