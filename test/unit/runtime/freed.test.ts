import { describe, expect, it } from 'vitest'

import type { StoreListener } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed, plainStore } from '../testkit/lesser-stores.ts'

describe('a store without a queue that tells when a name is free', () => {
  it('is listened to: who waits asks at once, and not after the pause that has grown meanwhile', async () => {
    const env = new VirtualEnv()
    const plain = plainStore(memoryStore({ now: () => env.instant() }))
    const listeners = new Set<StoreListener>()
    const store = changed(plain, {
      capabilities: { ...plain.capabilities, wakeups: 'push' },
      watch: (_, listener) => {
        listeners.add(listener)
        return { kind: 'watching', stop: () => void listeners.delete(listener) }
      },
      release: async (claim, next, timeout) => {
        const result = await plain.release(claim, next, timeout)
        for (const listener of listeners) listener({ kind: 'freed', name: claim.name })
        return result
      },
    })
    const [a, b] = [new Holdfast(store, { env }), new Holdfast(store, { env })]
    const lease = await env.until(a.mutex('x').acquire())
    const waiting = b.mutex('x').acquire()
    await env.advance(10_000)
    expect(listeners.size).toBe(1)
    const released = env.mono()
    await env.until(lease.release())
    await env.until(waiting)
    expect(env.mono() - released).toBeLessThan(5)
    await env.until(a.close())
    await env.until(b.close())
    expect(listeners.size).toBe(0)
  })
})
