import { describe, expect, it } from 'vitest'

import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

describe('the virtual clock', () => {
  it('runs timers in the order of their due times, at exactly those times', async () => {
    const env = new VirtualEnv()
    const fired: [string, number][] = []
    env.setTimer(() => fired.push(['late', env.mono()]), 30, false)
    env.setTimer(() => fired.push(['early', env.mono()]), 10, false)
    env.setTimer(() => fired.push(['middle', env.mono()]), 20.5, true)
    await env.advance(25)
    expect(fired).toEqual([
      ['early', 10],
      ['middle', 20.5],
    ])
    expect(env.mono()).toBe(25)
    await env.advance(5)
    expect(fired.at(-1)).toEqual(['late', 30])
  })

  it('finishes all promise callbacks of a timer before the next timer', async () => {
    const env = new VirtualEnv()
    const log: string[] = []
    const chain = async (): Promise<void> => {
      log.push('first')
      for (let i = 0; i < 50; i += 1) await Promise.resolve()
      log.push('first is done')
    }
    env.setTimer(() => void chain().catch(() => undefined), 5, false)
    env.setTimer(() => log.push('second'), 5.000001, false)
    await env.advance(10)
    expect(log).toEqual(['first', 'first is done', 'second'])
  })

  it('runs timers that a timer sets, when they fall into the same stretch of time', async () => {
    const env = new VirtualEnv()
    let ticks = 0
    const tick = (): void => {
      ticks += 1
      env.setTimer(tick, 10, true)
    }
    env.setTimer(tick, 10, true)
    await env.advance(100)
    expect(ticks).toBe(10)
  })

  it('runs deferred calls after promise callbacks and before the next timer', async () => {
    const env = new VirtualEnv()
    const log: string[] = []
    env.setTimer(() => log.push('timer'), 0, false)
    env.defer(() => {
      log.push('deferred')
      queueMicrotask(() => log.push('its promise callback'))
      env.defer(() => log.push('deferred again'))
    })
    queueMicrotask(() => log.push('promise callback'))
    await env.advance(0)
    expect(log).toEqual(['promise callback', 'deferred', 'its promise callback', 'deferred again', 'timer'])
  })

  it('orders timers that are due together by its seed', async () => {
    const order = async (seed: number): Promise<string> => {
      const env = new VirtualEnv({ seed })
      let log = ''
      for (const letter of 'abcdefgh') env.setTimer(() => void (log += letter), 7, false)
      await env.advance(7)
      return log
    }
    const orders = await Promise.all([1, 1, 2, 3, 4].map(order))
    expect(orders[0]).toBe(orders[1])
    expect(new Set(orders).size).toBeGreaterThan(2)
  })

  it('never runs a cancelled timer, and counts those that are left', async () => {
    const env = new VirtualEnv()
    const cancelled = env.setTimer(() => expect.unreachable(), 5, false)
    env.setTimer(() => undefined, 10, true)
    expect([env.timers, env.foregroundTimers]).toEqual([2, 1])
    cancelled.cancel()
    cancelled.cancel()
    expect([env.timers, env.foregroundTimers]).toEqual([1, 0])
    await env.advance(10)
    expect(env.timers).toBe(0)
  })

  it('moves each clock on its own and fires no timer by a jump', async () => {
    const env = new VirtualEnv({ wall: 1_000_000 })
    const boot = env.boot()
    let fired = 0
    env.setTimer(() => void (fired += 1), 100, false)
    env.jump({ wall: -3_600_000 })
    env.jump({ boot: 500 })
    expect([env.mono(), env.boot() - boot, env.wall()]).toEqual([0, 500, -2_600_000])
    env.stall(250)
    expect([env.mono(), fired]).toEqual([250, 0])
    await env.advance(0)
    expect([env.mono(), fired]).toEqual([250, 1])
  })

  it('lets pass as much time as a promise needs', async () => {
    const env = new VirtualEnv()
    const work = async (): Promise<string> => {
      await env.sleep(1000)
      await env.sleep(500)
      return 'done'
    }
    expect(await env.until(work())).toBe('done')
    expect(env.mono()).toBe(1500)
  })

  it('says so when nothing can settle a promise any more', async () => {
    const env = new VirtualEnv()
    await expect(env.until(new Promise(() => undefined))).rejects.toThrow('still pending')
  })

  it('is idle when only background timers are left', async () => {
    const env = new VirtualEnv()
    const again = (): void => void env.setTimer(again, 10, true)
    again()
    env.setTimer(() => undefined, 35, false)
    await env.runUntilIdle()
    expect(env.mono()).toBe(35)
    env.setTimer(() => undefined, 100, false)
    await expect(env.runUntilIdle(50)).rejects.toThrow('still set')
  })

  it('gives the same ids for the same seed, without a dot', () => {
    const ids = (seed: number): string[] => {
      const env = new VirtualEnv({ seed })
      return Array.from({ length: 20 }, () => env.randomId())
    }
    expect(ids(7)).toEqual(ids(7))
    expect(ids(7)).not.toEqual(ids(8))
    expect(new Set(ids(7)).size).toBe(20)
    for (const id of ids(7)) expect(id).toMatch(/^[0-9a-f]{32}$/)
  })

  it('serves as the clock of a store', async () => {
    const env = new VirtualEnv({ wall: 5 })
    await env.advance(12.5)
    expect(env.instant()).toEqual({ ms: 12.5, micros: 17_500 })
  })
})
