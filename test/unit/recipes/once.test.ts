import { describe, expect, expectTypeOf, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast, LockLostError } from '../../../src/index.ts'
import { once } from '../../../src/recipes/index.ts'
import type { OnceOptions, TickOutcome } from '../../../src/recipes/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { World } from '../runtime/far-store.ts'
import { changed } from '../testkit/lesser-stores.ts'
import { fleet, HOUR } from './fleet.ts'
import { SharedCache } from './kit.ts'

const kinds = (outcomes: readonly TickOutcome<unknown>[]): string[] =>
  outcomes.map(({ kind }) => kind).toSorted()

describe('a job once per period', () => {
  it('runs on one instance, although all start it at the same time', async () => {
    const w = world()
    const { instances, runs } = fleet(w, 3)
    const outcomes = await w.env.until(Promise.all(instances.map(({ job }) => job.tick())))
    expect(kinds(outcomes)).toEqual(['ran', 'running', 'running'])
    expect(runs).toHaveLength(1)
  })

  it('does not run again for an instance whose clock is behind, and does in the next period for one that is ahead', async () => {
    const w = world()
    const { first, second, runs } = fleet(w, 2)
    expect(await w.env.until(first.job.tick())).toMatchObject({ kind: 'ran', result: 1 })
    await w.env.advance(HOUR / 2)
    expect(await w.env.until(second.job.tick())).toEqual({ kind: 'skipped', last: null })
    await w.env.advance(HOUR * 0.45)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran', result: 2 })
    expect(runs).toHaveLength(2)
  })

  it('runs again after a minimum that is given instead of the period', async () => {
    const w = world()
    const { first, second } = fleet(w, 2, { atLeast: 5000 })
    await w.env.until(first.job.tick())
    await w.env.advance(4800)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'skipped' })
    await w.env.advance(200)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
  })

  it.each([
    ['a claim', () => ({})],
    ['a memory', (w: World) => ({ memory: new SharedCache(w.env) })],
  ])('counts the period from the beginning of a run, however long that took: %s', async (_, options) => {
    const w = world()
    const { first, second } = fleet(w, 2, { run: () => w.env.sleep(HOUR / 2).then(() => 1), ...options(w) })
    await w.env.until(first.job.tick())
    await w.env.advance(HOUR * 0.35)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'skipped' })
    await w.env.advance(HOUR * 0.1)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
  })

  it('is not started beside a run that takes longer than the minimum', async () => {
    const w = world()
    const [one, other] = [w.process({ ttl: 3000 }), w.process({ ttl: 3000 })].map(({ holdfast, env }) =>
      once(holdfast, 'report', { run: () => env.sleep(20_000), atLeast: 1000, env }),
    )
    const long = one?.tick()
    await w.env.advance(15_000)
    expect(await w.env.until(Promise.resolve(other?.tick()))).toEqual({ kind: 'running' })
    expect(await w.env.until(Promise.resolve(long))).toMatchObject({ kind: 'ran' })
  })

  it('stays done when the instance that ran it is shut down', async () => {
    const w = world()
    const { first, second } = fleet(w, 2)
    await w.env.until(first.job.tick())
    await w.env.until(first.process.holdfast.close())
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'skipped' })
    await w.env.advance(HOUR)
    expect(await isClean(w, 'report:ran')).toBe(true)
    expect(await isClean(w, 'report')).toBe(true)
  })

  it('counts as run when its instance died in the middle: at most once', async () => {
    const w = world()
    const { first, second, runs } = fleet(w, 2)
    first.job.tick().catch(() => {})
    await w.env.advance(50)
    first.process.env.pause(1e9)
    await w.env.advance(HOUR / 2)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'skipped' })
    await w.env.advance(HOUR / 2)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
    expect(runs).toHaveLength(2)
  })

  it.each([
    ['keep', 'skipped'],
    ['retry', 'Error: no paper'],
  ] as const)(
    'that throws tells its caller; with afterFailure: %s the next tick is %s',
    async (afterFailure, next) => {
      const w = world()
      const run = (): number => {
        throw new Error('no paper')
      }
      const { first, second } = fleet(w, 2, { run, afterFailure })
      await expect(w.env.until(first.job.tick())).rejects.toThrow('no paper')
      expect(await w.env.until(second.job.tick().then(({ kind }) => kind, String))).toBe(next)
    },
  )

  it('whose lock is lost while it runs hears that, and its caller learns that it may not have run alone', async () => {
    const w = world()
    const { holdfast, store, env } = w.process({ ttl: 3000 })
    let told: unknown
    const job = once(holdfast, 'report', {
      every: HOUR,
      env,
      run: async ({ signal }) => {
        await env.sleep(20_000)
        told = signal.reason
        return 'done'
      },
    })
    const tick = job.tick().catch((error: unknown) => error)
    await w.env.advance(100)
    store.lose('renew', 'request', Infinity)
    const error = await w.env.until(tick)
    expect(told).toBeInstanceOf(LockLostError)
    expect(error).toBeInstanceOf(LockLostError)
    expect(error).toMatchObject({ outcome: { status: 'fulfilled', value: 'done' } })
  })

  it.each(['claim', 'renew', 'release'] as const)(
    'ends, and gives its lock back, when the store never answers a %s about the run',
    async (method) => {
      const w = world()
      const { holdfast, env, store } = w.process()
      const { [method]: known } = store
      const silent = (...args: unknown[]): unknown =>
        JSON.stringify(args).includes(':ran"')
          ? new Promise(() => {})
          : (known as (...given: unknown[]) => unknown)(...args)
      Object.assign(store, { [method]: silent })
      const run = (): void => {
        if (method === 'release') throw new Error('the job failed')
      }
      const job = once(holdfast, 'nightly', { every: HOUR, afterFailure: 'retry', env, run })
      const done = job.tick().then(
        ({ kind }) => kind,
        (error: Error) => error.name,
      )
      const expected = { claim: 'StoreUnavailableError', renew: 'ran', release: 'Error' }
      expect(await w.env.until(done, 60_000)).toBe(expected[method])
      expect(await isClean(w, 'nightly')).toBe(true)
    },
  )

  it('needs a store that remembers long enough, or a memory', () => {
    const w = world({ maxTtl: 60_000 })
    expect(() => fleet(w, 2)).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        argument: 'every',
        message: expect.stringContaining('memory') as string,
      }),
    )
    expect(() => fleet(w, 2, { memory: new SharedCache(w.env) })).not.toThrow()
  })

  it.each([
    [{ every: 1000, atLeast: 1000 }, 'every'],
    [{}, 'every'],
    [{ every: 0 }, 'every'],
    [{ every: 1000, run: undefined as never }, 'run'],
    [{ atLeast: 0.5 }, 'atLeast'],
    [{ every: 1000, afterFailure: 'maybe' as 'keep' }, 'afterFailure'],
  ])('refuses %j', (wrong, argument) => {
    const { holdfast } = world().process()
    expect(() => once(holdfast, 'report', { run: () => 1, ...wrong })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument }),
    )
  })
})

describe('a job with a memory', () => {
  it('tells the other instances its result', async () => {
    const w = world()
    const { first, second, runs } = fleet(w, 2, { memory: new SharedCache(w.env) })
    const began = w.env.wall()
    const ran = await w.env.until(first.job.tick())
    const token = ran.kind === 'ran' ? String(ran.token) : ''
    const last = { began, ended: began + 100, token, outcome: { kind: 'result', value: 1 } }
    expect(await w.env.until(second.job.tick())).toEqual({ kind: 'skipped', last })
    expect(await w.env.until(second.job.last())).toEqual(last)
    await w.env.advance(HOUR * 0.9)
    expect(await w.env.until(second.job.last())).toBe(null)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
    expect(runs).toHaveLength(2)
  })

  it('is run by another instance when the first one died in the middle', async () => {
    const w = world()
    const { first, second, runs } = fleet(w, 2, { memory: new SharedCache(w.env) })
    first.job.tick().catch(() => {})
    await w.env.advance(50)
    first.process.env.pause(1e9)
    expect(await w.env.until(second.job.tick())).toEqual({ kind: 'running' })
    await w.env.advance(3000)
    expect(await w.env.until(second.job.tick())).toMatchObject({ kind: 'ran' })
    expect(runs).toHaveLength(2)
  })

  it('remembers a failure too', async () => {
    const w = world()
    const { first, second } = fleet(w, 2, {
      memory: new SharedCache(w.env),
      run: () => Promise.reject(new Error('no')),
    })
    await expect(w.env.until(first.job.tick())).rejects.toThrow('no')
    expect(await w.env.until(second.job.tick())).toMatchObject({
      kind: 'skipped',
      last: { outcome: { kind: 'failed' } },
    })
  })

  it('has a result of the type that the job returns', () => {
    const { holdfast } = world().process()
    const job = once(holdfast, 'report', { every: HOUR, run: () => Promise.resolve({ rows: 3 }) })
    expectTypeOf(() => job.tick())
      .returns.resolves.extract<{ kind: 'ran' }>()
      .toHaveProperty('result')
      .toEqualTypeOf<{ rows: number }>()
  })
})

describe('a process that is stopped while it asks whether the job was run', () => {
  // What it asked is answered before any timer says that its lock has run out meanwhile.
  it.each(['the store', 'a memory'])('does not begin the job without its lock: %s', async (asked) => {
    const w = world()
    const { holdfast, store, env } = w.process({ ttl: 5000 })
    const stopped = <A>(answer: A): A => (w.env.stall(20_000), answer)
    const { claim } = store
    store.claim = async (request, timeout) => {
      const answer = await claim(request, timeout)
      return request.name.endsWith(':ran') ? stopped(answer) : answer
    }
    const memory = { get: async () => stopped(undefined), set: () => undefined, delete: () => undefined }
    let runs = 0
    const job = once(holdfast, 'job', {
      every: HOUR,
      run: () => ++runs,
      env,
      ...(asked === 'a memory' ? { memory } : {}),
    })
    const error: unknown = await w.env.until(job.tick().catch((reason: unknown) => reason))
    expect(error).toBeInstanceOf(LockLostError)
    // An outcome would say that it has run.
    expect([runs, (error as LockLostError).outcome]).toEqual([0, undefined])
    store.claim = claim
    // The period is left to whoever comes next.
    const next = once(w.process().holdfast, 'job', { every: HOUR, run: () => ++runs, env: w.env })
    expect(await w.env.until(next.tick())).toMatchObject({ kind: 'ran' })
  })

  it('skips it when there was a run, whatever became of the lock', async () => {
    const w = world()
    const { holdfast, env } = w.process({ ttl: 5000 })
    const cache = new SharedCache(w.env)
    const options = { every: HOUR, run: () => 'done', env }
    await w.env.until(once(holdfast, 'job', { ...options, memory: cache }).tick())
    const memory = {
      get: (key: string) => (w.env.stall(20_000), cache.get(key)),
      set: () => undefined,
      delete: () => undefined,
    }
    const outcome = await w.env.until(once(holdfast, 'job', { ...options, memory }).tick())
    expect(outcome).toMatchObject({ kind: 'skipped', last: { outcome: { value: 'done' } } })
  })
})

it('is refused for a time that the store may forget before it is over', () => {
  const w = world()
  const { store, env } = w.process()
  const capabilities = { ...store.capabilities, maxTtl: 60_000, earlyExpiry: 1000 }
  const holdfast = new Holdfast(changed(store, { capabilities }), { env })
  const job = (atLeast: number): unknown => once(holdfast, 'bills', { atLeast, run: () => 1, env })
  expect(() => job(59_001)).toThrow('to 59000 ms')
  expect(() => job(59_000)).not.toThrow()
})

it.each(['a claim', 'a Map'])(
  'does not run early, or twice, when the wall clock is put forward or back: %s',
  async (kept) => {
    const w = world()
    const { first } = fleet(w, 1, kept === 'a Map' ? { memory: new Map() } : {})
    const tick = async (): Promise<string> => (await w.env.until(first.job.tick())).kind
    for (const wall of [2 * HOUR, -3 * HOUR]) {
      expect(await tick()).toBe('ran')
      w.env.jump({ wall })
      expect(await tick()).toBe('skipped')
      await w.env.advance(0.89 * HOUR)
      expect(await tick()).toBe('skipped')
      await w.env.advance(0.11 * HOUR)
    }
  },
)

describe('a store that grants nothing after a crash until the longest claim is over', () => {
  const open = (capabilities: Partial<Store['capabilities']>) => {
    const w = world()
    const { store } = w.process()
    const known = { ...store.capabilities }
    const changeable = changed(store, { capabilities: known })
    Object.assign(known, capabilities)
    const holdfast = new Holdfast(changeable, { env: w.env })
    let runs = 0
    const job = (options: Partial<OnceOptions<number>>) =>
      once(holdfast, 'bills', { run: () => ++runs, env: w.env, ...options })
    return { w, holdfast, job, known, runs: () => runs }
  }

  it('does not remember runs for longer than a minute', () => {
    const { job } = open({ waitsAfterCrash: true })
    expect(() => job({ every: HOUR })).toThrow('grants no lock to anybody')
    expect(() => job({ atLeast: 60_001 })).toThrow(expect.objectContaining({ argument: 'atLeast' }))
    for (const fits of [{ every: 60_000 }, { atLeast: 60_000 }, { every: HOUR, memory: new Map() }])
      expect(() => job(fits)).not.toThrow()
  })

  it('may say so only when it was reached: no job is begun, and its lock is free', async () => {
    const { w, holdfast, job, known, runs } = open({})
    const bills = job({ every: HOUR })
    Object.assign(known, { waitsAfterCrash: true })
    const wrong = { code: 'INVALID_ARGUMENT', argument: 'every' }
    await expect(w.env.until(bills.tick())).rejects.toMatchObject(wrong)
    expect(runs()).toBe(0)
    expect(await w.env.until(holdfast.mutex('bills').tryAcquire())).not.toBeNull()
  })
})

describe('a store that keeps claims for longer than it is asked to', () => {
  const LATE = 4_000
  const EARLY = 1_000
  const lasting = (w: World): { holdfast: Holdfast; env: World['env'] } => {
    const { store } = w.process()
    const capabilities = { ...store.capabilities, minTtl: 2_000, earlyExpiry: EARLY, lateExpiry: LATE }
    const later = <R extends { readonly ttl: number }>(request: R): R => ({
      ...request,
      ttl: request.ttl + LATE,
    })
    const late = changed(store, {
      capabilities,
      claim: (request, timeout) => store.claim(later(request), timeout),
      renew: (requests, timeout) => store.renew(requests.map(later), timeout),
    })
    return { holdfast: new Holdfast(late, { env: w.env }), env: w.env }
  }

  it('is refused for a period of which the next one could be skipped', () => {
    const { holdfast, env } = lasting(world())
    const job = (options: { every?: number; atLeast?: number; memory?: Map<string, unknown> }): unknown =>
      once(holdfast, 'bills', { ...options, run: () => 1, env })
    expect(() => job({ every: 59_999 })).toThrow('every other period of 59999 ms. Pass a memory.')
    expect(() => job({ every: 5_000 })).toThrow(expect.objectContaining({ argument: 'every' }))
    for (const fits of [{ every: 60_000 }, { atLeast: 5_000 }, { every: 5_000, memory: new Map() }])
      expect(() => job(fits)).not.toThrow()
  })

  it.each([0, 30_000, 51_000, 53_999])(
    'runs the job in every period, also where that takes %i ms',
    async (ms) => {
      const { holdfast, env } = lasting(world())
      const job = once(holdfast, 'bills', { every: 60_000, run: () => env.sleep(ms), env })
      for (let period = 0; period < 4; period++) {
        const ends = env.mono() + 60_000
        expect((await env.until(job.tick())).kind).toBe('ran')
        await env.advance(ends - env.mono())
      }
    },
  )
})

it('runs once a month, longer than a timer can wait: with a memory, for no store keeps a claim so long', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const month = { every: 31 * 86_400_000, run: () => 'sent', env }
  expect(() => once(holdfast, 'bills', month)).toThrow('Pass a memory.')
  const bills = once(holdfast, 'bills', { ...month, memory: new Map() })
  const tick = async (): Promise<string> => (await w.env.until(bills.tick())).kind
  expect(await tick()).toBe('ran')
  await w.env.advance(27 * 86_400_000)
  expect(await tick()).toBe('skipped')
  await w.env.advance(86_400_000)
  expect(await tick()).toBe('ran')
})
