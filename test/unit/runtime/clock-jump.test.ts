import { describe, expect, it } from 'vitest'

import type { ClaimRequest } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { world } from './far-store.ts'

const STRANGER: ClaimRequest = {
  name: 'x',
  id: 'stranger.1',
  weight: 1,
  capacity: 1,
  ttl: 3_600_000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'a stranger',
}

describe('after a clock was put forward, or the machine slept', () => {
  it('a lease taken then still ends in time, although a timer from before is set for later', async () => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl: 1000 })
    // Its end is an hour away on the clock that jumps, and so is the timer of all ends.
    const limited = await env.until(holdfast.mutex('a').acquire({ maxHold: 3_600_000 }))
    env.jump({ boot: 7_200_000, wall: 7_200_000 })
    expect(limited.held).toBe(false)
    const lease = await env.until(holdfast.mutex('b').acquire())
    const { signal } = lease
    store.lose('any', 'request', Infinity)
    await env.advance(990)
    expect(signal.aborted).toBe(true)
  })

  it('a lease taken then is renewed in time', async () => {
    const { env, process } = world()
    const { holdfast } = process({ ttl: 60_000 })
    await env.until(holdfast.mutex('long').acquire())
    env.jump({ boot: 3_600_000, wall: 3_600_000 })
    const lease = await env.until(holdfast.mutex('short').acquire({ ttl: 1000 }))
    await env.advance(5000)
    expect(lease.held).toBe(true)
    expect(lease.signal.aborted).toBe(false)
  })

  it.each([{ wall: 3_600_000 }, { boot: 3_600_000, wall: 3_600_000 }])(
    'a wait lasts as long as it was to last (%o)',
    async (jump) => {
      const { env, server, process } = world()
      await server.claim(STRANGER, 1000)
      const { holdfast } = process()
      const failure = (wait: Promise<unknown>): Promise<unknown> => wait.catch((error: unknown) => error)
      const one = failure(holdfast.mutex('x').acquire({ wait: 30_000 }))
      const several = failure(holdfast.all(['a', 'x']).acquire({ wait: 31_000 }))
      await env.advance(1000)
      env.jump(jump)
      expect(await env.until(one)).toMatchObject({ code: 'LOCK_TIMEOUT', waited: 30_000 })
      expect(env.mono()).toBe(30_000)
      expect(await env.until(several)).toMatchObject({ code: 'LOCK_TIMEOUT' })
      expect(env.mono()).toBe(31_000)
    },
  )

  it.each([
    ['slept', { boot: 60_000, wall: 60_000 }, {}],
    [
      'slept, and the wall clock is not to be looked at',
      { boot: 60_000, wall: 60_000 },
      { clock: { wall: false } },
    ],
    ['had its wall clock put forward', { wall: 60_000 }, {}],
  ] as const)(
    'a machine that %s hears of it within half a second, although nothing else happens',
    async (_, jump, options) => {
      const { env, process } = world()
      const { holdfast } = process(options)
      const lease = await env.until(holdfast.mutex('x').acquire())
      const { signal } = lease
      await env.advance(1234)
      env.jump(jump)
      await env.advance(502)
      expect(signal.aborted).toBe(true)
    },
  )

  it('one timer looks for that, whatever the number of sessions, and none when nothing is held or waited for', async () => {
    const env = new VirtualEnv()
    const store = memoryStore({ now: () => env.instant() })
    const holdfasts = Array.from({ length: 50 }, () => new Holdfast(store, { env, ttl: 60_000 }))
    const leases = await Promise.all(holdfasts.map((holdfast, n) => holdfast.mutex(`${n}`).acquire()))
    // Of each session the one for its renewals, and the one that looks.
    expect(env.timers).toBe(51)
    expect(env.foregroundTimers).toBe(0)
    await Promise.all(leases.map((lease) => lease.release()))
    await env.advance(120_000)
    expect(env.timers).toBe(0)
  })
})
