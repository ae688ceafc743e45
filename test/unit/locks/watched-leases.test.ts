import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { LeaseHandle } from '../../../src/locks/leak-watch.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'

/** Which of so many leases can be told to have been forgotten. */
async function watched(
  holdfast: Holdfast,
  count: number,
  take: (at: number) => Promise<Lease | null>,
): Promise<number[]> {
  const seen: number[] = []
  for (let at = 0; at < count; at++) {
    const lease = await take(at)
    if (lease instanceof LeaseHandle) seen.push(at)
    await lease?.release()
  }
  await holdfast.close()
  return seen
}

describe('leases that are watched for being forgotten', () => {
  const first = Array.from({ length: 64 }, (_, at) => at)

  it.each(['acquire', 'tryAcquire'] as const)(
    'are the first, and then one in a thousand, by %s',
    async (how) => {
      const holdfast = new Holdfast(memoryStore())
      const lock = holdfast.mutex('x')
      expect(await watched(holdfast, 2_100, () => lock[how]())).toEqual([...first, 1024, 2048])
    },
  )

  it('are none where that is not wanted', async () => {
    const holdfast = new Holdfast(memoryStore(), { leakWarnings: false })
    const lock = holdfast.mutex('x')
    expect(await watched(holdfast, 10, (at) => (at % 2 === 0 ? lock.acquire() : lock.tryAcquire()))).toEqual(
      [],
    )
  })

  it('behave as the lease itself', async () => {
    const holdfast = new Holdfast(memoryStore())
    const lock = holdfast.mutex('x')
    const lease = await lock.acquire({ ttl: 5_000 })
    expect(await lock.tryAcquire()).toBeNull()
    expect([lease.name, typeof lease.token, lease.held, lease.signal.aborted]).toEqual([
      'x',
      'bigint',
      true,
      false,
    ])
    expect(lease.remaining()).toBeGreaterThan(1_000)
    lease.assertHeld({ atLeast: 1_000 })
    expect(() => lease.assertHeld({ atLeast: 60_000 })).toThrow(/less than 60000 ms/)
    expect(await lease.release()).toBe('released')
    expect([lease.held, lease.remaining()]).toEqual([false, 0])
    expect(() => lease.assertHeld()).toThrow(/it was released/)
    {
      await using other = await lock.acquire()
      expect(other.held).toBe(true)
    }
    expect(await (await lock.tryAcquire())?.release()).toBe('released')
    await holdfast.close()
  })
})
