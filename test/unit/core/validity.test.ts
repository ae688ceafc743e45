import { describe, expect, it } from 'vitest'

import { extended, renewalDue, validUntil } from '../../../src/core/validity.ts'

describe('validity', () => {
  it('is the ttl from the sending, less drift, resolution and what the store may forget early', () => {
    expect(validUntil(1000, 10_000)).toBe(1000 + 10_000 - 100 - 2)
    expect(validUntil(1000, 10_000, 1000)).toBe(1000 + 10_000 - 100 - 2 - 1000)
  })

  it('grows by a renewal that is confirmed in time', () => {
    expect(extended(100, 50, 150)).toBe(150)
  })

  it('does not come back by a renewal that is confirmed too late', () => {
    expect(extended(100, 100, 150)).toBe(100)
    expect(extended(100, 120, 150)).toBe(100)
  })

  it('does not shrink by a renewal that was sent earlier and answered later', () => {
    expect(extended(100, 50, 80)).toBe(100)
  })

  it('leaves time for two more tries when a renewal fails', () => {
    expect(renewalDue(0, 900)).toBe(300)
  })
})
