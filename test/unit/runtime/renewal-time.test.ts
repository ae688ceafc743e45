import { describe, expect, it } from 'vitest'

import { world } from './far-store.ts'

const MINUTES = 120_000
const WHILE = 25_000

describe('a lease is renewed for as long as the store answers within a sixth of its ttl', () => {
  it.each([
    { ttl: 15_000, patience: 5000, answersIn: 2400 },
    { ttl: 60_000, patience: 5000, answersIn: 4800 },
    { ttl: 15_000, patience: 240, answersIn: 100 },
    { ttl: 600, patience: 5000, answersIn: 80 },
  ])('%o, whatever the patience of waiters', async ({ ttl, patience, answersIn }) => {
    const { env, process } = world()
    const { holdfast, store } = process({ ttl, patience })
    store.there = answersIn / 2
    store.back = answersIn / 2
    const lease = await env.until(holdfast.mutex('long').acquire())
    await env.advance(MINUTES)
    expect(lease.held).toBe(true)
  })

  it('also beside leases that are too short for that store', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    store.there = 65
    store.back = 65
    const lease = await env.until(holdfast.mutex('long').acquire())
    let lost = 0
    const shortOnes = async (name: string): Promise<void> => {
      while (env.mono() < WHILE) {
        const short = await holdfast.mutex(name, { ttl: 600 }).acquire()
        while (short.held) await env.sleep(50)
        lost++
      }
    }
    const all = Promise.all(Array.from({ length: 10 }, (_, n) => shortOnes(`short ${n}`)))
    await env.advance(WHILE)
    await env.until(all)
    expect(lost).toBeGreaterThan(50)
    expect(lease.held).toBe(true)
  })

  it('and those that have about as long go in one request, waiters in another', async () => {
    const { env, process } = world()
    const first = process()
    const second = process()
    await env.until(first.holdfast.mutex('a').acquire())
    await env.until(second.holdfast.mutex('b').acquire())
    await env.until(second.holdfast.mutex('c', { ttl: 14_000 }).acquire())
    const waiting = second.holdfast
      .mutex('a')
      .acquire({ wait: Infinity })
      .catch((error: unknown) => error)
    await env.advance(1)
    const before = second.store.sent.length
    second.store.gap()
    await env.advance(10_000)
    const renewals = second.store.sent.slice(before).filter(({ method }) => method === 'renew')
    expect(renewals.some(({ size }) => size === 2)).toBe(true)
    expect(renewals.every(({ size }) => size <= 2)).toBe(true)
    await env.until(second.holdfast.close({ drain: 0 }))
    expect(await waiting).toMatchObject({ code: 'CLOSED' })
    await env.until(first.holdfast.close({ drain: 0 }))
  })
})

describe('a waiter is given the lock by whatever store answers within requestTimeout and half of the ttl', () => {
  it.each([
    { ttl: 15_000, patience: 5000, answersIn: 900 },
    { ttl: 15_000, patience: 5000, answersIn: 4800 },
    { ttl: 15_000, patience: 240, answersIn: 200 },
    { ttl: 2000, patience: 2000, answersIn: 360 },
    { ttl: 600, patience: 5000, answersIn: 250 },
  ])('%o', async ({ ttl, patience, answersIn }) => {
    const { env, process } = world()
    const options = { ttl, patience }
    const [holder, other] = [process(options), process(options)]
    const near = await env.until(holder.holdfast.mutex('a').acquire())
    other.store.there = answersIn / 2
    other.store.back = answersIn / 2
    other.store.events = answersIn / 2
    const waiting = other.holdfast.mutex('a').acquire({ wait: MINUTES })
    await env.advance(5 * ttl)
    await env.until(near.release())
    const asked = env.mono()
    const lease = await env.until(waiting)
    expect(lease.held).toBe(true)
    expect(env.mono() - asked).toBeLessThan(6 * answersIn + 1000)
  })
})
