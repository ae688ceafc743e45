import { describe, expect, it } from 'vitest'

import { world } from './far-store.ts'

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
})
