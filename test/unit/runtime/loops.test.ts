import { afterEach, describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lock } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'

/** Far more than may follow each other, and few enough to fail in a moment. */
const MOST = 20_000

let holdfast: Holdfast | undefined
afterEach(() => holdfast?.close())

const loops: Record<string, (lock: Lock) => Promise<unknown>> = {
  'acquire and release': async (lock) => {
    const lease = await lock.acquire()
    await lease.release()
  },
  'acquire, and release unawaited': async (lock) => {
    const lease = await lock.acquire()
    lease.release().catch(() => {})
  },
  'tryAcquire and release': async (lock) => {
    const lease = await lock.tryAcquire()
    await lease?.release()
  },
  run: (lock) => lock.run(() => undefined),
}

describe('a loop around a lock whose store answers at once', () => {
  it.each(Object.keys(loops))('lets timers, and with them renewals, have their turn: %s', async (way) => {
    holdfast = new Holdfast(memoryStore())
    const lock = holdfast.mutex('hot')
    let fired = false
    setTimeout(() => (fired = true), 0)
    for (let i = 0; i < MOST && !fired; i++) await loops[way]?.(lock)
    expect(fired).toBe(true)
  })
})
