import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'

import { ClosedError } from '../../../src/index.ts'
import { cached, leader, once, stripedStock } from '../../../src/recipes/index.ts'
import type { StripedStock, Term } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { Process, World } from '../runtime/far-store.ts'
import { SharedCache } from './kit.ts'

const HOUR = 3_600_000
const TTL = 3000

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()))

/** A candidate that needs a second to put things away. */
function tidyLeader({ holdfast, env }: Process, log: string[], who: string, errors: unknown[] = []) {
  const terms: Term[] = []
  const candidate = leader(holdfast, 'boss', {
    async onElected(signal, term) {
      terms.push(term)
      log.push(`${who} begins`)
      await untilAborted(signal)
      await env.sleep(1000)
      log.push(`${who} ends`)
      // What a callback meets that takes another lock while everything closes.
      await holdfast.mutex('journal').run(() => log.push(`${who} writes`))
    },
    onError: (error) => errors.push(error),
    env,
  })
  return { candidate, terms }
}

function twoProcesses(w: World): [Process, Process] {
  return [w.process({ ttl: TTL }), w.process({ ttl: TTL })]
}

describe('closing a Holdfast', () => {
  it('has its leader step down, and lets nobody else lead before that one has put things away', async () => {
    const w = world()
    const log: string[] = []
    const errors: unknown[] = []
    const [one, other] = twoProcesses(w)
    const first = tidyLeader(one, log, 'first', errors)
    await w.env.advance(10)
    const second = tidyLeader(other, log, 'second')
    await w.env.advance(10)
    const closed = one.holdfast.close()
    await w.env.advance(0)
    expect(first.terms[0]?.signal.reason).toBeInstanceOf(ClosedError)
    expect(first.candidate).toMatchObject({ leading: false, state: 'stepping-down' })
    await w.env.advance(900)
    expect(log).toEqual(['first begins'])
    await w.env.until(closed, 2000)
    await w.env.advance(100)
    expect(log).toEqual(['first begins', 'first ends', 'second begins'])
    expect(errors).toEqual([])
    expect(first.candidate.health()).toMatchObject({ ok: false, problem: 'the Holdfast was closed' })
    await w.env.until(second.candidate.stop())
  })

  it('inside onElected waits for the drain and no longer', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: TTL })
    const candidate = leader(holdfast, 'boss', { onElected: () => holdfast.close({ drain: 2000 }), env })
    await w.env.advance(3000)
    expect(candidate.state).toBe('stopped')
    await w.env.runUntilIdle(1000)
    expect(await isClean(w, 'boss')).toBe(true)
  })

  it('tells a job that runs, keeps the others out until it has ended, and its run counts', async () => {
    const w = world()
    const [one, other] = twoProcesses(w)
    let told: unknown
    const job = ({ holdfast, env }: Process) =>
      once(holdfast, 'report', {
        every: HOUR,
        env,
        async run({ signal }) {
          await untilAborted(signal)
          told = signal.reason
          await env.sleep(1000)
          return 'done'
        },
      })
    const tick = job(one).tick()
    await w.env.advance(10)
    const closed = one.holdfast.close()
    await w.env.advance(900)
    expect(told).toBeInstanceOf(ClosedError)
    expect(await w.env.until(job(other).tick())).toEqual({ kind: 'running' })
    expect(await w.env.until(tick)).toMatchObject({ kind: 'ran', result: 'done' })
    await w.env.until(closed, 1000)
    expect(await w.env.until(job(other).tick())).toMatchObject({ kind: 'skipped' })
  })

  it('lets a load that is under way end, and what it loaded is kept', async () => {
    const w = world()
    const cache = new SharedCache(w.env)
    const { holdfast, env } = w.process({ ttl: TTL })
    const load = async (): Promise<string> => (await env.sleep(1000), 'v')
    const get = cached(holdfast, { cache, key: 'k', load, ttl: 60_000, env }).get()
    await w.env.advance(10)
    const closed = holdfast.close()
    expect(await w.env.until(get)).toBe('v')
    expect(cache.writes).toHaveLength(1)
    await w.env.until(closed, 1000)
    expect(await isClean(w, 'cache:k')).toBe(true)
  })

  it('stops all candidates of an office but the one whose callback goes on', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: TTL })
    const never = new Promise<void>(() => {})
    const stand = () => leader(holdfast, 'boss', { onElected: () => never, env })
    const [first, second, third] = [stand(), stand(), stand()]
    await w.env.advance(10)
    expect(first?.leading).toBe(true)
    await w.env.until(holdfast.close({ drain: 1000 }))
    await w.env.advance(1000)
    expect([first?.state, second?.state, third?.state]).toEqual(['stepping-down', 'stopped', 'stopped'])
  })

  it.each(['take', 'put', 'total', 'fill', 'forget'] as const)(
    'in the moment of the grant keeps a %s from beginning',
    async (what) => {
      const w = world()
      const { holdfast, env } = w.process({ ttl: TTL })
      const touched: string[] = []
      const storage = {
        read: () => (touched.push('read'), 1),
        write: () => (touched.push('write'), true),
      }
      const cache = { get: () => null, set: () => {}, delete: () => touched.push('delete') }
      const stock = stripedStock(holdfast, 'tickets', { segments: 1, storage, env })
      const value = cached(holdfast, { cache, key: 'k', load: () => 1, ttl: 1000, env })
      const begin = { ...bind(stock), forget: () => value.forget() }
      const done = begin[what]()
      const outcome = Promise.resolve(done).then(
        () => 'done',
        (error: unknown) => error,
      )
      const granted = (): void => void holdfast.close().catch(() => {})
      subscribe('holdfast:acquired', granted)
      const heard = await w.env.until(outcome, 20_000)
      unsubscribe('holdfast:acquired', granted)
      expect(heard).toBeInstanceOf(ClosedError)
      expect(touched).toEqual([])
    },
  )
})

function bind(stock: StripedStock) {
  return {
    take: () => stock.take(),
    put: () => stock.put(),
    total: () => stock.total(),
    fill: () => stock.fill(1),
  }
}
