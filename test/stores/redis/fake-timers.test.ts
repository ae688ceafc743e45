import { readFile } from 'node:fs/promises'

import { afterEach, describe, expect, it, vi } from 'vitest'

import { open } from 'holdfast'

import { available, redis } from '../../../scripts/services.mjs'

afterEach(() => void vi.useRealTimers())

/** What the guide on tests tells to fake beside a real store, in Vitest. */
const FAKE = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] as const

describe.skipIf(!available('redis'))('beside fake timers', () => {
  it('that the guide names', async () => {
    const guide = await readFile(new URL('../../../docs/guides/testing.md', import.meta.url), 'utf8')
    const list = FAKE.map((name) => `'${name}'`).join(', ')
    expect(guide).toContain(`vi.useFakeTimers({ toFake: [${list}] })`)
  })

  it.each(['ioredis', 'redis'] as const)('a lock through %s goes by real time', async (driver) => {
    await using server = await redis()
    const [one, other] = await Promise.all([open(server.url, { driver }), open(server.url, { driver })])
    vi.useFakeTimers({ toFake: [...FAKE] })
    const lease = await one.mutex('train').acquire()
    vi.advanceTimersByTime(3_600_000)
    expect(lease.held).toBe(true)
    expect(await other.mutex('train').tryAcquire()).toBeNull()
    const next = other.mutex('train').acquire()
    await lease.release()
    await (await next).release()
    await Promise.all([one.close(), other.close()])
  })
})
