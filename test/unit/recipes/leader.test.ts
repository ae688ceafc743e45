import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'

import { ClosedError, LockLostError } from '../../../src/index.ts'
import { leader, leaderOf, watchLeader } from '../../../src/recipes/index.ts'
import type { Candidate, LeaderInfo, Term } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { Process, World } from '../runtime/far-store.ts'
import { gate } from './kit.ts'

const TTL = 3000

interface Office {
  readonly candidate: Candidate
  readonly process: Process
  readonly terms: Term[]
  readonly errors: unknown[]
}

/** A candidate in a process of its own. By default it works until it is told to stop. */
function office(w: World, onElected: (signal: AbortSignal, term: Term) => unknown = untilAborted): Office {
  const process = w.process({ ttl: TTL, owner: `p${++processes}` })
  const terms: Term[] = []
  const errors: unknown[] = []
  const candidate = leader(process.holdfast, 'boss', {
    onElected: (signal, term) => {
      terms.push(term)
      return onElected(signal, term)
    },
    onError: (error) => errors.push(error),
    env: process.env,
  })
  return { candidate, process, terms, errors }
}

let processes = 0
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()))

describe('a leader', () => {
  it('is one of all, and stays it when its callback has returned', async () => {
    const w = world()
    const offices = [office(w, () => {}), office(w, () => {}), office(w, () => {})]
    await w.env.advance(60_000)
    expect(offices.map(({ candidate }) => candidate.leading)).toEqual([true, false, false])
    expect(offices.map(({ terms }) => terms.length)).toEqual([1, 0, 0])
    expect(offices.map(({ candidate }) => candidate.state)).toEqual(['leading', 'campaigning', 'campaigning'])
    expect(offices.every(({ candidate }) => candidate.health().ok)).toBe(true)
  })

  it('that resigns keeps the others out until its callback has come to its end', async () => {
    const w = world()
    const cleanedUp = gate()
    const first = office(w, (signal) => untilAborted(signal).then(() => cleanedUp.promise))
    await w.env.advance(10)
    const second = office(w)
    await w.env.advance(10)
    const resigned = first.candidate.resign()
    await w.env.advance(20_000)
    expect(first.candidate.state).toBe('stepping-down')
    expect(first.terms[0]?.signal.reason).toMatchObject({ name: 'AbortError' })
    expect(second.terms).toEqual([])
    cleanedUp.open()
    await w.env.until(resigned)
    await w.env.advance(10)
    expect(second.candidate.leading).toBe(true)
    expect(first.candidate.state).toBe('campaigning')
  })

  it('that was stopped for longer than its lease finds its term over before it can do anything', async () => {
    const w = world()
    const beliefs: [who: string, at: number][] = []
    const work = (who: string) => async (signal: AbortSignal, term: Term) => {
      const { env } = who === 'first' ? first.process : second.process
      while (!signal.aborted) {
        await env.sleep(50)
        try {
          term.assertHeld()
          beliefs.push([who, w.env.mono()])
        } catch {
          return
        }
      }
    }
    const first = office(w, work('first'))
    await w.env.advance(100)
    const second: Office = office(w, work('second'))
    await w.env.advance(100)
    first.process.env.pause(20_000)
    await w.env.advance(40_000)
    expect(first.terms).toHaveLength(1)
    expect(first.terms[0]?.signal.reason).toBeInstanceOf(LockLostError)
    expect(second.candidate.leading).toBe(true)
    expect(second.terms[0]?.token).toBeGreaterThan(first.terms[0]?.token ?? 0n)
    const lastOfFirst = Math.max(...beliefs.filter(([who]) => who === 'first').map(([, at]) => at))
    const firstOfSecond = Math.min(...beliefs.filter(([who]) => who === 'second').map(([, at]) => at))
    expect(lastOfFirst).toBeLessThan(firstOfSecond)
  })

  it('whose callback fails gives way to another one, and stands again after a pause that grows', async () => {
    const w = world()
    const times: number[] = []
    const first = office(w, () => {
      times.push(w.env.mono())
      throw new Error(`failure ${times.length}`)
    })
    await w.env.advance(5000)
    expect(first.errors.map(String).slice(0, 2)).toEqual(['Error: failure 1', 'Error: failure 2'])
    const pauses = times.slice(1).map((at, n) => at - (times[n] ?? 0))
    expect(pauses.length).toBeLessThan(8)
    expect(pauses.at(-1)).toBeGreaterThan((pauses[0] ?? 0) * 4)
    const second = office(w)
    await w.env.advance(60_000)
    expect(second.candidate.leading).toBe(true)
  })

  it('that stops because it was told to has not failed: it stands again at once', async () => {
    const w = world()
    const { candidate, terms, errors } = office(
      w,
      (signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    )
    await w.env.advance(10)
    await w.env.until(candidate.resign())
    await w.env.advance(10)
    expect(terms).toHaveLength(2)
    expect(errors).toEqual([])
  })

  it('does not begin a new term while the callback of the last one goes on, and its probe says so', async () => {
    const w = world()
    const ends = gate()
    const stubborn = office(w, () => ends.promise)
    await w.env.advance(10)
    stubborn.process.store.lose('any', 'request', Infinity)
    await w.env.advance(TTL)
    stubborn.process.store.heal()
    await w.env.advance(20_000)
    expect(stubborn.candidate.state).toBe('stepping-down')
    expect(stubborn.candidate.leading).toBe(false)
    expect(stubborn.candidate.health().ok).toBe(true)
    await w.env.advance(20_000)
    expect(stubborn.candidate.health()).toMatchObject({
      ok: false,
      problem: expect.stringContaining('goes on') as string,
    })
    expect(stubborn.terms).toHaveLength(1)
    ends.open()
    await w.env.advance(1000)
    expect(stubborn.terms).toHaveLength(2)
    expect(stubborn.candidate.health()).toMatchObject({ ok: true, state: 'leading' })
  })

  it('knows by its clock that it does not lead any more before any timer could tell', async () => {
    const w = world()
    const { candidate } = office(w)
    await w.env.advance(10)
    w.env.stall(TTL)
    expect(candidate.leading).toBe(false)
    expect(candidate.state).toBe('stepping-down')
  })

  it('whose term ended while the process stood still is in no trouble for as long as it led', async () => {
    const w = world()
    const { candidate } = office(w, () => new Promise(() => {}))
    await w.env.advance(3_600_000)
    w.env.stall(20_000)
    expect(candidate.health()).toEqual({ ok: true, state: 'stepping-down', for: 0 })
    w.env.stall(30_001)
    expect(candidate.health()).toMatchObject({ ok: false, state: 'stepping-down' })
  })
})

describe('a candidate', () => {
  it('goes on while the store is silent, reports it, and leads when the store is back', async () => {
    const w = world()
    const alone = office(w)
    alone.process.store.lose('any', 'request', Infinity)
    await w.env.advance(120_000)
    expect(alone.errors.length).toBeGreaterThan(2)
    expect(alone.errors[0]).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(alone.candidate.health()).toMatchObject({ ok: false, state: 'campaigning' })
    alone.process.store.heal()
    await w.env.advance(30_000)
    expect(alone.candidate.leading).toBe(true)
    expect(alone.candidate.health().ok).toBe(true)
  })

  it('that is stopped, leading or not, leaves nothing behind', async () => {
    const w = world()
    const [first, second] = [office(w), office(w)]
    await w.env.advance(1000)
    await w.env.until(Promise.all([first.candidate.stop(), second.candidate.stop()]))
    expect([first.candidate.state, second.candidate.state]).toEqual(['stopped', 'stopped'])
    expect(first.terms.length + second.terms.length).toBeLessThanOrEqual(2)
    await w.env.runUntilIdle()
    expect(await isClean(w, 'boss')).toBe(true)
    expect(first.candidate.health().ok).toBe(true)
  })

  it('that is stopped while the store is silent is kept from nothing', async () => {
    const w = world()
    const { candidate, process } = office(w)
    process.store.lose('any', 'request', Infinity)
    await w.env.advance(20_000)
    await w.env.until(candidate.stop())
    expect(candidate.health({ grace: 0 })).toEqual({ ok: true, state: 'stopped', for: 0 })
  })

  it('whose Holdfast is closed has stopped, and its probe says why', async () => {
    const w = world()
    const { candidate, process, terms } = office(w)
    await w.env.advance(10)
    await w.env.until(process.holdfast.close())
    await w.env.advance(10)
    expect(terms[0]?.signal.aborted).toBe(true)
    expect(candidate.health()).toMatchObject({
      ok: false,
      state: 'stopped',
      problem: 'the Holdfast was closed',
    })
  })

  it.each([{}, undefined, null])('must have something to do: %j', (options) => {
    const { holdfast } = world().process()
    expect(() => leader(holdfast, 'boss', options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'onElected' }),
    )
  })
})

describe('everybody', () => {
  it('can see who leads', async () => {
    const w = world()
    const { holdfast } = w.process()
    expect(await w.env.until(leaderOf(holdfast, 'boss'))).toBe(null)
    const first = office(w)
    await w.env.advance(10)
    const seen = await w.env.until(leaderOf(holdfast, 'boss'))
    expect(seen).toMatchObject({ owner: `p${processes}`, token: first.terms[0]?.token })
    expect(await w.env.until(first.candidate.observe())).toEqual(seen)
  })

  it('can watch the leaders change', async () => {
    const w = world()
    const { holdfast } = w.process()
    const controller = new AbortController()
    const seen: (LeaderInfo | null)[] = []
    const watching = (async () => {
      const { signal } = controller
      for await (const info of watchLeader(holdfast, 'boss', { signal, env: w.env })) seen.push(info)
    })()
    await w.env.advance(5000)
    const first = office(w)
    await w.env.advance(5000)
    await w.env.until(first.candidate.resign())
    await w.env.advance(5000)
    await w.env.until(first.candidate.stop())
    await w.env.advance(5000)
    controller.abort()
    await w.env.until(watching)
    expect(seen.map((info) => info?.token)).toEqual([
      undefined,
      ...first.terms.map(({ token }) => token),
      undefined,
    ])
    expect(first.terms).toHaveLength(2)
  })
})

it('a watch of leaders keeps no process that has closed its Holdfast, however seldom it looks', async () => {
  const w = world()
  const { holdfast } = w.process()
  const watch = watchLeader(holdfast, 'boss', { every: 3_600_000, env: w.env })
  expect(await w.env.until(watch.next())).toEqual({ done: false, value: null })
  const next = watch.next()
  await w.env.advance(1000)
  await w.env.until(holdfast.close())
  const closedAt = w.env.mono()
  await expect(w.env.until(next)).rejects.toBeInstanceOf(ClosedError)
  expect(w.env.mono() - closedAt).toBeLessThan(1000)
})

describe('a candidate that is told to stop', () => {
  it.each([
    ['before it asks', 0],
    ['while its claim is on the way', 5],
    ['when the answer comes in', 10],
    ['just after', 10.001],
  ])('%s does not lead any more: onElected is never called with a signal that has aborted', async (_, at) => {
    const w = world()
    const calls: boolean[] = []
    const { holdfast, store, env } = w.process({ ttl: TTL })
    store.there = store.back = 5
    const candidate = leader(holdfast, 'boss', {
      onElected: (signal) => {
        calls.push(signal.aborted)
        return untilAborted(signal)
      },
      env,
    })
    await w.env.advance(at)
    await w.env.until(candidate.stop())
    await w.env.advance(20)
    expect(calls.filter((aborted) => aborted)).toEqual([])
    expect(candidate.state).toBe('stopped')
    await w.env.runUntilIdle()
    expect(await isClean(w, 'boss')).toBe(true)
  })

  it('in the moment in which the grant arrives has not been elected', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: TTL })
    const calls: unknown[] = []
    const onAcquired = (): void => queueMicrotask(() => void candidate.stop())
    subscribe('holdfast:acquired', onAcquired)
    const candidate = leader(holdfast, 'boss', { onElected: (signal) => calls.push(signal), env })
    await w.env.advance(10)
    unsubscribe('holdfast:acquired', onAcquired)
    expect(calls).toEqual([])
    expect(candidate.state).toBe('stopped')
    expect(await isClean(w, 'boss')).toBe(true)
  })

  it('waits for the end of onElected in work that onElected has started outside of it', async () => {
    const w = world()
    const steps: string[] = []
    const { candidate, process } = office(w, async () => {
      process.holdfast
        .outside(() => candidate.stop())
        .then(
          () => steps.push('stopped'),
          () => {},
        )
      await process.env.sleep(50)
      steps.push('put away')
    })
    await w.env.advance(1000)
    expect(steps).toEqual(['put away', 'stopped'])
  })

  it.each(['stop', 'resign'] as const)(
    'from inside onElected does not wait for itself: await candidate.%s()',
    async (how) => {
      const w = world()
      const steps: string[] = []
      const first = office(w, async () => {
        if (steps.length > 0) return
        steps.push('elected')
        await first.candidate[how]()
        steps.push('told')
        await first.process.env.sleep(50)
        steps.push('put away')
      })
      await w.env.advance(10)
      const second = office(w)
      expect(steps).toEqual(['elected', 'told'])
      // Nobody leads before the callback has come to its end.
      await w.env.advance(30)
      expect(second.terms).toEqual([])
      await w.env.advance(1000)
      expect(steps).toEqual(['elected', 'told', 'put away'])
      expect(second.candidate.leading).toBe(true)
      expect(first.candidate.state).toBe(how === 'stop' ? 'stopped' : 'campaigning')
    },
  )

  it('by work that outlived onElected waits, as for anybody else', async () => {
    const w = world()
    let later: Promise<void> | undefined
    const { candidate } = office(w, (_, term) => {
      later = w.env.sleep(100).then(() => candidate.stop())
      term.signal.addEventListener('abort', () => {})
    })
    await w.env.advance(50)
    await w.env.until(Promise.resolve(later))
    expect(candidate.state).toBe('stopped')
    expect(await isClean(w, 'boss')).toBe(true)
  })

  it('hears of an error that was thrown while stepping down, and not of the one that it was told to stop with', async () => {
    const w = world()
    const told = office(w, (signal) => untilAborted(signal).then(() => signal.throwIfAborted()))
    await w.env.advance(10)
    await w.env.until(told.candidate.stop())
    expect(told.errors).toEqual([])
    const failing = office(w, (signal) =>
      untilAborted(signal).then(() => {
        throw new Error('the journal was not written')
      }),
    )
    await w.env.advance(10)
    await w.env.until(failing.candidate.stop())
    expect(failing.errors.map(String)).toEqual(['Error: the journal was not written'])
  })

  it('by its own onElected, again and again, leaves room for everything else', async () => {
    const w = world()
    const { candidate, terms } = office(w, (_, term) => term.resign())
    await w.env.advance(10_000)
    expect(terms.length).toBeLessThan(20)
    await w.env.until(candidate.stop())
  })
})

describe('candidates of one process', () => {
  it('lead with that token also where others here take the lock of that name', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: TTL })
    const held = await w.env.until(holdfast.mutex('boss').acquire())
    // In one line with these, a candidate would be handed a grant that was theirs.
    const others = Array.from({ length: 3 }, () => holdfast.mutex('boss').run(() => env.sleep(1)))
    const tokens: bigint[] = []
    const onElected = (signal: AbortSignal, term: Term) => (tokens.push(term.token), untilAborted(signal))
    const candidate = leader(holdfast, 'boss', { onElected, env })
    await w.env.advance(10)
    await w.env.until(held.release())
    await w.env.advance(100)
    expect(candidate.leading).toBe(true)
    expect(await w.env.until(candidate.observe())).toMatchObject({ token: tokens[0] })
    await w.env.until(candidate.stop())
    await w.env.until(Promise.all(others))
  })

  it('lead with the token that everybody sees at the store', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: TTL })
    const tokens: bigint[] = []
    const candidates = Array.from({ length: 4 }, () =>
      leader(holdfast, 'boss', {
        onElected: (signal, term) => (tokens.push(term.token), untilAborted(signal)),
        env,
      }),
    )
    const { holdfast: looker } = w.process()
    for (let n = 0; n < 8; n++) {
      await w.env.advance(100)
      const leading = candidates.filter((each) => each.leading)
      expect(leading).toHaveLength(1)
      const seen = await w.env.until(leaderOf(looker, 'boss'))
      expect(seen?.token).toBe(tokens.at(-1))
      const [boss] = leading as [Candidate]
      expect(await w.env.until(boss.observe())).toMatchObject({ token: tokens.at(-1) })
      await w.env.until(boss.resign())
    }
    expect(tokens).toHaveLength(9)
    await w.env.until(Promise.all(candidates.map((each) => each.stop())))
    await w.env.runUntilIdle()
    expect(await isClean(w, 'boss')).toBe(true)
  })
})
