import { afterEach, beforeEach, expect, it, vi } from 'vitest'

import { TestLocks } from 'holdfast/testing'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('waits for two seconds of fake time', async () => {
  await using locks = new TestLocks({ time: 'global' })
  await locks.others.mutex('train:G101').acquire()
  await Promise.all([
    expect(locks.holdfast.mutex('train:G101').acquire({ wait: 2000 })).rejects.toThrow('2000 ms'),
    vi.advanceTimersByTimeAsync(2000),
  ])
})
