import { describe, expect, it } from 'vitest'

import { claimRows, lockJson } from '../../../src/cli/lock-view.ts'

const infoWith = (token: bigint): Parameters<typeof lockJson>[0] => ({
  name: 'a',
  capacity: 1,
  holders: [{ owner: 'somebody', weight: 1, expiresIn: 5000, token }],
  waiters: [],
})
const HOUR_US = 3_600_000_000n
const hourAgo = (): bigint => BigInt(Date.now()) * 1000n - HOUR_US

describe('for how long a lock is held', () => {
  it('is told where tokens follow a clock', () => {
    const info = infoWith(hourAgo())
    expect(JSON.stringify(lockJson(info, { kind: 'redis' }))).toMatch(/"age":36\d{5}\b/)
    expect(claimRows(info, { kind: 'redis' })[0]?.[4]).toMatch(/^1h|^60m/)
  })

  it.each([
    ['memcached', 'count from when the name was first used', hourAgo()],
    ['zookeeper', 'of the sixth epoch look like times since 2023', ((6n << 32n) | 1_000_000n) << 16n],
  ])('is not told by tokens of %s, which %s', (kind, _, token) => {
    const info = infoWith(token)
    expect(JSON.stringify(lockJson(info, { kind }))).not.toContain('"age"')
    expect(claimRows(info, { kind })[0]?.[4]).toBe('')
  })
})
