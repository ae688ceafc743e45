import { describe, expect, it } from 'vitest'

import { ALL } from '../../../src/core/contract.ts'
import { checkExclusivity } from '../../../src/testkit/checkers/exclusivity.ts'
import { checkFencedResource } from '../../../src/testkit/checkers/fenced-resource.ts'
import { checkFifo } from '../../../src/testkit/checkers/fifo.ts'
import { checkLeftovers } from '../../../src/testkit/checkers/leftovers.ts'
import { checkLostUpdates } from '../../../src/testkit/checkers/lost-update.ts'
import { checkTokenOrder } from '../../../src/testkit/checkers/token-order.ts'
import { assertNone } from '../../../src/testkit/checkers/violation.ts'
import type { Hold } from '../../../src/testkit/holds.ts'

let ops = 0

/** A hold of a mutex from one moment to another; asked for just before unless it says otherwise. */
function hold(from: number, to: number, token: number, other: Partial<Hold> = {}): Hold {
  ops += 1
  return {
    process: 'p',
    op: ops,
    name: 'n',
    weight: 1,
    capacity: 1,
    token: BigInt(token),
    laterTokens: [],
    invoked: BigInt(from - 1),
    queued: undefined,
    from: BigInt(from),
    to: BigInt(to),
    ...other,
  }
}

const reader = { capacity: ALL }
const writer = { capacity: ALL, weight: ALL }

describe('the exclusivity checker', () => {
  it('allows holds that touch, and holds of other names', () => {
    const other = hold(15, 35, 9, { name: 'other' })
    expect(checkExclusivity([hold(10, 20, 1), hold(20, 30, 2), other])).toEqual([])
  })

  it('finds two holders of a mutex, whoever is listed first', () => {
    const [violation] = checkExclusivity([hold(19, 30, 2), hold(10, 20, 1)])
    expect(violation?.message).toContain('held 2 of 1 times at 19')
  })

  it('finds a short hold within a long one, and one that lasts over several', () => {
    expect(checkExclusivity([hold(10, 100, 1), hold(40, 41, 2)])).toHaveLength(1)
    expect(checkExclusivity([hold(10, 100, 1), hold(20, 30, 2), hold(40, 50, 3)])).toHaveLength(2)
  })

  it('allows readers together, and no writer beside them', () => {
    expect(checkExclusivity([hold(10, 30, 1, reader), hold(20, 40, 2, reader)])).toEqual([])
    expect(checkExclusivity([hold(10, 30, 1, reader), hold(20, 40, 2, writer)])).toHaveLength(1)
  })

  it('allows readers beside a writer that only reads from then on, not before, and no other writer', () => {
    const first = hold(10, 50, 1, { ...writer, readsFrom: 30n })
    expect(checkExclusivity([first, hold(30, 40, 2, reader)])).toEqual([])
    expect(checkExclusivity([first, hold(29, 40, 2, reader)])).toHaveLength(1)
    expect(checkExclusivity([first, hold(35, 60, 2, writer)])).toHaveLength(1)
    expect(checkExclusivity([first, hold(50, 60, 2, writer)])).toEqual([])
    // It ended before it came to that.
    expect(
      checkExclusivity([hold(10, 20, 1, { ...writer, readsFrom: 30n }), hold(20, 60, 2, writer)]),
    ).toEqual([])
  })

  it('counts permits', () => {
    const permits = (weight: number): Partial<Hold> => ({ capacity: 3, weight })
    const two = hold(10, 30, 1, permits(2))
    expect(checkExclusivity([two, hold(15, 40, 2, permits(1)), hold(30, 50, 3, permits(2))])).toEqual([])
    expect(checkExclusivity([two, hold(15, 40, 2, permits(1)), hold(29, 50, 3, permits(2))])).toHaveLength(1)
  })
})

describe('the token checker', () => {
  it('wants a larger token for whoever asked after the other had it', () => {
    expect(checkTokenOrder([hold(10, 20, 5), hold(30, 40, 6)])).toEqual([])
    expect(checkTokenOrder([hold(10, 20, 6), hold(30, 40, 5)])).toHaveLength(1)
  })

  it('allows any order for grants that were asked for at the same time', () => {
    expect(checkTokenOrder([hold(10, 20, 6), hold(30, 40, 5, { invoked: 9n })])).toEqual([])
  })

  it('allows any order among readers, but not between readers and writers', () => {
    expect(checkTokenOrder([hold(10, 90, 20, reader), hold(30, 90, 11, reader)])).toEqual([])
    expect(checkTokenOrder([hold(10, 20, 20, reader), hold(30, 40, 11, writer)])).toHaveLength(1)
    expect(checkTokenOrder([hold(10, 20, 20, writer), hold(30, 40, 11, reader)])).toHaveLength(1)
  })

  it('finds a token that was given twice, also to readers', () => {
    expect(checkTokenOrder([hold(10, 90, 7, reader), hold(30, 90, 7, reader)])).toHaveLength(1)
  })

  it('compares the tokens of one name only', () => {
    expect(checkTokenOrder([hold(10, 20, 7), hold(30, 40, 7, { name: 'other' })])).toEqual([])
  })

  it('finds a lease that changed its token', () => {
    expect(checkTokenOrder([hold(10, 20, 7, { laterTokens: [7n, 7n] })])).toEqual([])
    expect(checkTokenOrder([hold(10, 20, 7, { laterTokens: [7n, 8n] })])).toHaveLength(1)
  })
})

describe('the queue checker', () => {
  const waiter = hold(50, 60, 10, { invoked: 5n, queued: 8n })

  it('counts those that came after a waiter stood in line and went before it', () => {
    const overtaking = [hold(20, 25, 2), hold(30, 35, 3)]
    const earlier = hold(7, 10, 1)
    const later = hold(70, 80, 11)
    const { maxBypass, violations } = checkFifo([waiter, ...overtaking, earlier, later])
    expect(maxBypass).toBe(2)
    expect(violations).toHaveLength(1)
    expect(checkFifo([waiter, ...overtaking, earlier, later], 2).violations).toEqual([])
  })

  it('says nothing about those that never stood in line', () => {
    expect(checkFifo([{ ...waiter, queued: undefined }, hold(20, 25, 2)])).toEqual({
      maxBypass: 0,
      violations: [],
    })
  })
})

describe('the checker of fenced resources', () => {
  const write = (
    token: number,
    accepted: boolean,
    name = 'r',
  ): Parameters<typeof checkFencedResource>[0][0] => ({
    name,
    token: BigInt(token),
    accepted,
  })

  it('lets a holder write several times, and wants stale writes refused', () => {
    expect(checkFencedResource([write(1, true), write(1, true), write(3, true), write(2, false)])).toEqual([])
    expect(checkFencedResource([write(1, true), write(3, true), write(2, true)])).toHaveLength(1)
  })

  it('keeps resources apart', () => {
    expect(checkFencedResource([write(3, true), write(2, true, 'other')])).toEqual([])
  })

  it('finds a write that was refused without a reason', () => {
    expect(checkFencedResource([write(3, true), write(3, false)])).toHaveLength(1)
  })
})

describe('the checker of lost updates', () => {
  const update = (
    read: number,
    outcome: 'stored' | 'unknown' = 'stored',
  ): Parameters<typeof checkLostUpdates>[0][0] => ({
    read,
    wrote: read + 1,
    outcome,
  })

  it('wants every increment in the result', () => {
    expect(checkLostUpdates([update(1), update(0), update(2)], 3)).toEqual([])
    expect(checkLostUpdates([update(0), update(1)], 1)).toHaveLength(1)
  })

  it('finds two increments of the same value', () => {
    const violations = checkLostUpdates([update(0), update(1), update(1)], 3)
    expect(violations[0]?.message).toContain('2 increments were built on 1')
  })

  it('finds an update that is no increment', () => {
    expect(checkLostUpdates([{ read: 0, wrote: 2, outcome: 'stored' }], 1)).toHaveLength(1)
  })

  it('leaves open whether an unknown one counts', () => {
    expect(checkLostUpdates([update(0), update(1, 'unknown')], 1)).toEqual([])
    expect(checkLostUpdates([update(0), update(1, 'unknown')], 2)).toEqual([])
    expect(checkLostUpdates([update(0), update(1, 'unknown')], 3)).toHaveLength(1)
  })
})

describe('the checker of leftovers', () => {
  it('is content with names that nobody holds or waits for', () => {
    expect(checkLeftovers({ names: [{ name: 'n', capacity: 1, holders: [], waiters: [] }] })).toEqual([])
  })

  it('names every claim, key and timer that is left', () => {
    const claim = { id: 'secret.1', owner: 'host', weight: 1, expiresIn: 5 }
    const names = [{ name: 'n', capacity: 1, holders: [{ ...claim, token: 7n }], waiters: [claim] }]
    const messages = checkLeftovers({ names, backend: ['key x'], timers: 2 }).map(({ message }) => message)
    expect(messages).toEqual([
      '"n" is still held by host (token 7)',
      '"n" is still waited for by host',
      'the backend still has key x',
      '2 timers are still set',
    ])
    expect(messages.join()).not.toContain('secret')
  })
})

describe('a verdict', () => {
  it('throws with what was found, and only the first of many', () => {
    assertNone([])
    const many = Array.from({ length: 30 }, (_, index) => ({
      rule: 'fifo' as const,
      message: `no. ${index}`,
    }))
    expect(() => assertNone(many)).toThrow(/fifo: no\. 0[^]*and 20 more/)
  })
})
