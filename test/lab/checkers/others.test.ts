import { describe, expect, it } from 'vitest'

import { checkAbortLatency, checkHandOver, checkLiveness, checkNoise } from '../../../src/testkit/index.ts'
import type { Hold } from '../../../src/testkit/index.ts'

describe('the liveness checker', () => {
  const wait = { process: 'p', name: 'n' }
  const bounds = { healedAt: 100, bound: 50, until: 1000 }

  it('allows waits that end within the bound, counted from when nothing was in the way any more', () => {
    const waits = [
      { ...wait, from: 0, to: 150 },
      { ...wait, from: 200, to: 250 },
      { ...wait, from: 0, to: 20 },
    ]
    expect(checkLiveness(waits, bounds)).toEqual([])
  })

  it('finds one that took longer, and one that never ended', () => {
    const [late, never, ...rest] = checkLiveness(
      [
        { ...wait, from: 0, to: 151 },
        { ...wait, from: 0, to: undefined },
      ],
      bounds,
    )
    expect(late?.message).toContain('waited for 51 ms')
    expect(never?.message).toContain('still waits after 900 ms')
    expect(rest).toEqual([])
  })
})

describe('the checker of hand-overs', () => {
  const ms = (time: number): bigint => BigInt(time) * 1_000_000n
  const hold = (invoked: number, from: number, to: number): Hold => ({
    process: 'p',
    op: from,
    name: 'n',
    weight: 1,
    capacity: 1,
    token: ms(from),
    laterTokens: [],
    invoked: ms(invoked),
    queued: undefined,
    from: ms(from),
    to: ms(to),
  })

  it('allows a lock to be free while nobody waits', () => {
    expect(checkHandOver([hold(0, 1, 10), hold(500, 501, 502)], { bound: 5 })).toEqual([])
  })

  it('finds a lock that was free although somebody waited', () => {
    expect(checkHandOver([hold(0, 1, 10), hold(2, 14, 20)], { bound: 5 })).toEqual([])
    expect(checkHandOver([hold(0, 1, 10), hold(2, 16, 20)], { bound: 5 })).toHaveLength(1)
  })
})

describe('the noise checker', () => {
  it('hears nothing where nothing is', () => {
    expect(checkNoise({ rejections: [], warnings: [], listeners: 0, timers: 0, requests: 0 })).toEqual([])
  })

  it('hears rejections, warnings, listeners, timers and requests', () => {
    const found = checkNoise({
      rejections: [new Error('boom')],
      warnings: ['MaxListeners'],
      listeners: 1,
      timers: 2,
      requests: 3,
    })
    expect(found.map(({ message }) => message)).toEqual([
      'a rejection was not handled: Error: boom',
      'a warning was given: MaxListeners',
      '1 listener was left on a signal',
      '2 timers were set after the end',
      '3 requests were sent for nobody',
    ])
  })
})

describe('the checker of abort latency', () => {
  const loss = { process: 'p', name: 'n', token: 1n, validUntil: 100 }

  it('allows a signal that aborts in time, or as soon as its process goes on', () => {
    expect(
      checkAbortLatency([
        { ...loss, abortedAt: 60 },
        { ...loss, abortedAt: 104 },
      ]),
    ).toEqual([])
    const standstills = [{ process: 'p', from: 50, to: 300 }]
    expect(checkAbortLatency([{ ...loss, abortedAt: 301 }], { standstills })).toEqual([])
  })

  it('finds one that came too late, whatever other processes did', () => {
    expect(checkAbortLatency([{ ...loss, abortedAt: 106 }])).toHaveLength(1)
    const standstills = [{ process: 'other', from: 50, to: 300 }]
    expect(checkAbortLatency([{ ...loss, abortedAt: 301 }], { standstills })).toHaveLength(1)
    const over = [{ process: 'p', from: 10, to: 90 }]
    expect(checkAbortLatency([{ ...loss, abortedAt: 106 }], { standstills: over })).toHaveLength(1)
  })
})
