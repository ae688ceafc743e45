import { describe, expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest, Store, Unknown } from '../../../src/core/contract.ts'
import { cacheMemory, claimMemory } from '../../../src/recipes/run-memory.ts'
import type { Mark, RunRecord } from '../../../src/recipes/run-memory.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed } from '../testkit/lesser-stores.ts'

const HOLD = 10_000
const SILENT: Unknown = { kind: 'unknown', cause: new Error('silent') }
const RECORD: RunRecord<number> = { began: 1, ended: 2, token: '3', outcome: { kind: 'result', value: 4 } }

function open(
  change: (store: Store) => Partial<Store> = () => ({}),
  limits: Partial<Store['capabilities']> = {},
) {
  const env = new VirtualEnv()
  const server = memoryStore({ now: () => env.instant() })
  const capabilities = { ...server.capabilities, ...limits }
  const store = changed(server, { capabilities, ...change(server) })
  const memory = () => claimMemory<number>(store, { name: 'job', hold: HOLD, env })
  const begin = (remaining = 60_000): Promise<Mark<number> | null> =>
    env.until(memory().begin(() => remaining))
  return { env, server, memory, begin }
}

const holders = async (server: Store): Promise<number> => {
  const info = await server.inspect('job:ran', 100)
  return 'kind' in info ? -1 : info.holders.length
}

describe('the mark of a run', () => {
  it('keeps others from running for the hold, from its beginning', async () => {
    const { env, begin } = open()
    expect(await begin()).not.toBeNull()
    await env.advance(HOLD - 1)
    expect(await begin()).toBeNull()
    await env.advance(1)
    expect(await begin()).not.toBeNull()
  })

  it('that is kept lasts no longer for that, and is what was last here', async () => {
    const { env, memory, begin } = open()
    const own = memory()
    expect(await own.last()).toBeNull()
    const mark = await env.until(own.begin(() => 60_000))
    await env.advance(4_000)
    await env.until(mark?.keep(RECORD) ?? Promise.resolve())
    expect(await own.last()).toBe(RECORD)
    await env.advance(5_999)
    expect(await begin()).toBeNull()
    await env.advance(1)
    expect(await begin()).not.toBeNull()
  })

  it('that is kept after its time keeps nobody from running', async () => {
    const asked: unknown[] = []
    const { env, begin } = open((server) => ({
      renew: (requests, timeout) => {
        asked.push(requests)
        return server.renew(requests, timeout)
      },
    }))
    const mark = await begin()
    await env.advance(HOLD)
    await env.until(mark?.keep(RECORD) ?? Promise.resolve())
    expect(asked).toEqual([])
  })

  it('that is dropped is gone at once', async () => {
    const { env, begin, server } = open()
    const mark = await begin()
    await env.until(mark?.drop() ?? Promise.resolve())
    expect(await holders(server)).toBe(0)
    expect(await begin()).not.toBeNull()
  })

  it.each<[string, () => never | Unknown | { released: Unknown }]>([
    ['does not answer', () => SILENT],
    ['says that it does not know', () => ({ released: SILENT })],
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
  ])(
    'that is dropped while the store %s is asked for until it is gone, and then no more',
    async (_, answer) => {
      let withdrawn = 0
      const { env, begin, server } = open((store) => ({
        release: () => answer() as never,
        withdraw: (ref, timeout) => (++withdrawn < 4 ? SILENT : store.withdraw(ref, timeout)),
      }))
      const mark = await begin()
      await env.until(mark?.drop() ?? Promise.resolve())
      expect(withdrawn).toBe(1)
      // Nobody waits for it, and no process either.
      expect(env.foregroundTimers).toBe(0)
      await env.advance(5_000)
      expect([withdrawn, await holders(server)]).toEqual([4, 0])
      await env.advance(100_000)
      expect([withdrawn, env.timers]).toEqual([4, 0])
    },
  )

  it('that may have been made is taken back, for a minute, and the run is not made', async () => {
    const asked: number[] = []
    const { env, memory } = open(() => ({
      claim: () => SILENT,
      withdraw: () => {
        asked.push(env.mono())
        return SILENT
      },
    }))
    const begun = env.until(memory().begin(() => 60_000))
    await expect(begun).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: SILENT.cause })
    await env.advance(200_000)
    expect(asked.length).toBeGreaterThan(10)
    expect(asked.at(-1)).toBeGreaterThanOrEqual(60_000)
    expect(asked.at(-1)).toBeLessThan(70_000)
    expect(env.timers).toBe(0)
  })
})

describe('a machine that sleeps while the job runs', () => {
  const SLEPT = 4_000
  const kept = async (sleep: (env: VirtualEnv) => void): Promise<number[]> => {
    const rests: number[] = []
    const { env, begin } = open((server) => ({
      renew: (requests, timeout) => {
        rests.push(...requests.map(({ ttl }) => ttl))
        return server.renew(requests, timeout)
      },
    }))
    const mark = await begin()
    await env.advance(1_000)
    sleep(env)
    await env.until(mark?.keep(RECORD) ?? Promise.resolve())
    const cache = {
      get: () => null,
      set: (_: string, __: string, ttl: number) => rests.push(ttl),
      delete: () => {},
    }
    const other = await cacheMemory<number>(cache, { name: 'job', hold: HOLD, env }).begin(() => 60_000)
    await env.advance(1_000)
    sleep(env)
    await env.until(other?.keep(RECORD) ?? Promise.resolve())
    return rests
  }

  it('has the run remembered for no more than a second longer: the store has counted on', async () => {
    const rest = HOLD - 1_000 - SLEPT
    const rests = await kept((env) => env.jump({ boot: SLEPT, wall: SLEPT }))
    expect(rests).toEqual([rest + 1_000, rest + 1_000])
  })

  it.each<[string, { boot?: number; wall?: number }]>([
    ['a wall clock that is put forward', { wall: 3_600_000 }],
    ['a wall clock that is put back', { wall: -3_600_000 }],
    ['a boot clock that ticks in seconds', { boot: 999 }],
  ])('is not what it takes for that: %s', async (_, jump) => {
    expect(await kept((env) => env.jump(jump))).toEqual([HOLD - 1_000, HOLD - 1_000])
  })
})

describe('a store that answers as none may', () => {
  it('ends no process by the promises in its answers, however late', async () => {
    const unhandled: unknown[] = []
    const hear = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', hear)
    const lost = (): never => ({ kind: 'no', cause: Promise.reject(new Error('lost')) }) as never
    const list = (): never => [Promise.reject(new Error('lost')), Promise.reject(new Error('too'))] as never
    const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
    const broken: ((sleep: (ms: number) => Promise<void>) => Partial<Store>)[] = [
      () => ({ claim: lost, withdraw: lost }),
      (sleep) => ({ claim: () => sleep(60_000).then(lost) }),
      () => ({ renew: lost }),
      () => ({ renew: list }),
      () => ({ release: lost, withdraw: lost }),
    ]
    for (const change of broken) {
      const { env, memory } = open(() => change((ms) => env.sleep(ms)))
      const mark = await env.until(
        memory()
          .begin(() => 60_000)
          .catch(() => null),
      )
      await env.until(mark?.keep(RECORD) ?? Promise.resolve())
      await env.until(mark?.drop() ?? Promise.resolve())
      await env.advance(100_000)
      await turn()
    }
    process.off('unhandledRejection', hear)
    expect(unhandled).toEqual([])
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a text', 'held'],
    ['a half', { kind: 'held' }],
  ])('is told by name, and what it may have made is taken back: %s', async (_, answer) => {
    const withdrawn: string[] = []
    const { env, memory } = open((store) => ({
      claim: async (request) => {
        await store.claim(request, 100)
        return answer as never
      },
      withdraw: (ref, timeout) => {
        withdrawn.push(ref.name)
        return store.withdraw(ref, timeout)
      },
    }))
    const wrong = { code: 'STORE_BROKEN', method: 'claim' }
    await expect(env.until(memory().begin(() => 60_000))).rejects.toMatchObject(wrong)
    expect(withdrawn).toEqual(['job:ran'])
  })

  it('is asked again for how long to remember the run', async () => {
    let asked = 0
    const { begin, env } = open((store) => ({
      renew: (requests, timeout) => (++asked < 3 ? [] : store.renew(requests, timeout)),
    }))
    const mark = await begin()
    await env.until(mark?.keep(RECORD) ?? Promise.resolve())
    await env.advance(5_000)
    expect([asked, env.timers]).toEqual([3, 0])
  })

  it('about what is dropped is asked until it is gone', async () => {
    const { begin, env, server } = open(() => ({ release: () => undefined as never }))
    const mark = await begin()
    await env.until(mark?.drop() ?? Promise.resolve())
    expect(await holders(server)).toBe(0)
  })
})

describe('what the store is asked', () => {
  it('is for the hold and what it forgets early, within what it can', async () => {
    const seen: ClaimRequest[] = []
    const renewed: RenewRequest[] = []
    const listen = (server: Store): Partial<Store> => ({
      claim: (request, timeout) => {
        seen.push(request)
        return server.claim(request, timeout)
      },
      renew: (requests, timeout) => {
        renewed.push(...requests)
        return server.renew(requests, timeout)
      },
    })
    for (const limits of [{}, { earlyExpiry: 500 }, { maxTtl: 7_000 }, { minTtl: 20_000 }]) {
      const { env, begin } = open(listen, limits)
      const mark = await begin()
      await env.advance(2_500)
      await env.until(mark?.keep(RECORD) ?? Promise.resolve())
    }
    expect(seen.map(({ ttl }) => ttl)).toEqual([10_000, 10_500, 7_000, 20_000])
    expect(renewed.map(({ ttl }) => ttl)).toEqual([7_500, 8_000, 7_000, 20_000])
    expect(seen[0]).toMatchObject({ name: 'job:ran', weight: 1, capacity: 1, tokens: 1, whenBusy: 'try' })
    expect(renewed[0]).toMatchObject({ id: seen[0]?.id, tokens: 0 })
  })

  it.each([
    [60_000, 5_000],
    [3_000, 1_500],
    [1_001, 500],
    [20, 50],
  ])('with %i ms of the lock left may take %i ms', async (remaining, expected) => {
    const timeouts: number[] = []
    const { begin } = open((server) => ({
      claim: (request, timeout) => {
        timeouts.push(timeout)
        return server.claim(request, timeout)
      },
    }))
    await begin(remaining)
    expect(timeouts).toEqual([expected])
  })

  it('and never answered is given up after a while', async () => {
    const { env, memory } = open(() => ({ claim: () => new Promise(() => {}) }))
    const began = env.mono()
    await expect(env.until(memory().begin(() => 1_000))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(env.mono() - began).toBe(2_000)
    await env.advance(1_000)
    expect(env.timers).toBe(0)
  })
})
