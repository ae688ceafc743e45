import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import { Requests } from '../../../src/runtime/requests.ts'
import { CLAIM, RENEW } from '../../../src/core/answers.ts'
import { Holdfast, StoreUnavailableError } from '../../../src/index.ts'
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
    onLateWatch: () => undefined,
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

/** Objects that throw when somebody looks at them, in the ways in which an answer, or what is in it, is looked at. */
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
const failing = (field: string, on: object = {}): object =>
  Object.defineProperty(on, field, {
    enumerable: true,
    get: () => {
      throw new Error(`${field} is gone`)
    },
  })
const CAUSES: readonly (readonly [string, () => unknown])[] = [
  ['a revoked Proxy', revoked],
  ['an error whose message is gone', () => failing('message', new Error('x'))],
  ['an error whose cause is gone', () => failing('cause', new Error('x'))],
  ['an error with a revoked Proxy as its cause', () => new Error('x', { cause: revoked() })],
  ['an error whose message is no text', () => Object.assign(new Error('x'), { message: { code: 7 } })],
]

describe('what a store says and nobody can read', () => {
  it.each(CAUSES)('why it does not know is told to a waiter when its time is over: %s', async (_, cause) => {
    const env = new VirtualEnv()
    const store = changed(memoryStore({ now: () => env.instant() }), {
      claim: () => ({ kind: 'unknown', cause: cause() }),
      inspect: () => ({ kind: 'unknown', cause: cause() }),
    })
    const holdfast = new Holdfast(store, { env })
    const waiting = env.until(holdfast.mutex('x').acquire({ wait: 500 }))
    await expect(waiting).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(holdfast.inspect('x')).rejects.toBeInstanceOf(StoreUnavailableError)
    await env.until(holdfast.close())
  })

  it.each(CAUSES)('why one renewal failed ends nothing, and no other one either: %s', async (_, cause) => {
    const env = new VirtualEnv()
    const own = memoryStore({ now: () => env.instant() })
    const store = changed(own, {
      renew: async (requests, timeout) => {
        const answers = await own.renew(requests, timeout)
        return answers.map((answer, index) =>
          requests[index]?.name === 'a' ? { kind: 'unknown', cause: cause() } : answer,
        )
      },
    })
    const holdfast = new Holdfast(store, { env, ttl: 3000 })
    const heard: unknown[] = []
    const hear = (event: unknown): void => void heard.push(event)
    subscribe('holdfast:at-risk', hear)
    const [a, b] = await Promise.all([holdfast.mutex('a').acquire(), holdfast.mutex('b').acquire()])
    await env.advance(10_000)
    unsubscribe('holdfast:at-risk', hear)
    expect([a.held, b.held, heard.length > 0]).toEqual([false, true, true])
    await env.until(holdfast.close({ drain: 0 }))
  })

  it.each([...CAUSES, ['a text', () => 'no']] as typeof CAUSES)(
    'what it throws is a broken store: %s',
    async (_, thrown) => {
      const env = new VirtualEnv()
      const store = changed(memoryStore({ now: () => env.instant() }), {
        claim: () => {
          throw thrown()
        },
      })
      const holdfast = new Holdfast(store, { env })
      await expect(env.until(holdfast.mutex('x').acquire({ wait: 500 }))).rejects.toMatchObject({
        code: 'STORE_BROKEN',
      })
      await env.until(holdfast.close())
    },
  )

  it.each([
    failing('cause', { kind: 'unknown' }),
    failing('retryable', { kind: 'unknown', cause: null }),
    failing('contended', { kind: 'held', token: 1n, count: 1 }),
    failing('mark', { kind: 'busy' }),
  ])('a field of an answer is a broken store: %#', async (answer) => {
    const env = new VirtualEnv()
    const store = changed(memoryStore({ now: () => env.instant() }), { claim: () => answer as never })
    const holdfast = new Holdfast(store, { env })
    await expect(env.until(holdfast.mutex('x').acquire({ wait: 500 }))).rejects.toMatchObject({
      code: 'STORE_BROKEN',
    })
    await env.until(holdfast.close())
  })
})
