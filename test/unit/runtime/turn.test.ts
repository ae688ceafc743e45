import { describe, expect, it } from 'vitest'

import { ALL } from '../../../src/core/contract.ts'
import type { Claim } from '../../../src/runtime/claim.ts'
import { laneKind, sameSpec } from '../../../src/runtime/lane-kind.ts'
import { blockFor, isUpToDate, mayPassOn } from '../../../src/runtime/turn.ts'

interface Given {
  readonly lane?: object
  readonly session?: object
  readonly kind?: object
}

/** A claim at 0 that is good for 15 s, with nothing against handing it on. */
function claim(more: object = {}, { lane, session, kind }: Given = {}): Claim {
  return {
    validUntil: 15_000,
    contended: false,
    sections: 1,
    since: 0,
    only: null,
    era: 3,
    heardAt: 0,
    ...more,
    lane: {
      renew: true,
      shared: false,
      ttl: 15_000,
      lastTurn: 0,
      sharers: 0,
      kind: { fair: 'turns', ...kind },
      session: {
        closed: false,
        guards: () => false,
        patience: 10_000,
        turn: { count: 16, ms: 4 },
        pushes: true,
        era: 3,
        ...session,
      },
      ...lane,
    },
  } as unknown as Claim
}

describe('whether the next task here may have the claim', () => {
  it('is not so while the store says that it guards something, but readers may share it', () => {
    const session = { guards: (id: string) => id === 'guarding', closed: false, patience: 10_000 }
    expect(mayPassOn(claim({ id: 'guarding' }, { session }), 1)).toBe(false)
    expect(mayPassOn(claim({ id: 'another' }, { session }), 1)).toBe(true)
    expect(mayPassOn(claim({ id: 'guarding' }, { session, lane: { shared: true } }), 1)).toBe(true)
  })

  it('is so while nobody waits elsewhere, however long that takes', () => {
    expect(mayPassOn(claim(), 0)).toBe(true)
    expect(mayPassOn(claim({ sections: 10_000, since: -60_000 }), 0)).toBe(true)
  })

  it('is not so when others wait, and the turn has used up its sections or its time', () => {
    const contended = { contended: true }
    expect(mayPassOn(claim(contended), 3.9)).toBe(true)
    expect(mayPassOn(claim(contended), 4)).toBe(false)
    expect(mayPassOn(claim({ ...contended, sections: 15 }), 0)).toBe(true)
    expect(mayPassOn(claim({ ...contended, sections: 16 }), 0)).toBe(false)
    expect(mayPassOn(claim(contended, { kind: { fair: 'strict' } }), 0)).toBe(false)
    expect(mayPassOn(claim({}, { kind: { fair: 'strict' } }), 0)).toBe(true)
  })

  it('is not so near its end, when closing, or where leases are not renewed', () => {
    // A third of the shorter of ttl and patience.
    expect(mayPassOn(claim({ validUntil: 3_334 }), 0)).toBe(true)
    expect(mayPassOn(claim({ validUntil: 3_333 }), 0)).toBe(false)
    expect(mayPassOn(claim({ validUntil: 1_000 }, { lane: { ttl: 3_000 } }), 0)).toBe(true)
    expect(mayPassOn(claim({ validUntil: 999 }, { lane: { ttl: 3_000 } }), 0)).toBe(false)
    expect(mayPassOn(claim({}, { session: { closed: true } }), 0)).toBe(false)
    expect(mayPassOn(claim({}, { lane: { renew: false } }), 0)).toBe(false)
  })
})

describe('whether one more reader may share the claim unasked', () => {
  it('is so where the store tells of queues, if nothing was missed since its last answer', () => {
    expect(isUpToDate(claim(), 0)).toBe(true)
    expect(isUpToDate(claim({ era: 2 }), 0)).toBe(false)
    // Nobody listened when it was asked for, nor now.
    expect(isUpToDate(claim({ era: 0 }, { session: { era: 0 } }), 0)).toBe(false)
  })

  it('is so where the store tells nothing, for one turn after its last answer', () => {
    const polls = { session: { pushes: false } }
    expect(isUpToDate(claim({ era: 0 }, polls), 3.9)).toBe(true)
    expect(isUpToDate(claim({ era: 3 }, polls), 4)).toBe(false)
  })
})

describe('how many tokens a claim asks for', () => {
  it('is one, or as many as are likely to be used', () => {
    expect(blockFor(claim({ sections: 0 }), 0)).toBe(1)
    expect(blockFor(claim({ sections: 0 }), 5)).toBe(5)
    expect(blockFor(claim({ sections: 0 }), 500)).toBe(64)
    expect(blockFor(claim({ sections: 200 }), 5)).toBe(200)
    expect(blockFor(claim({ sections: 3 }, { lane: { lastTurn: 90 } }), 5)).toBe(90)
    expect(blockFor(claim({ sections: 5_000 }), 0)).toBe(1_024)
  })

  it('is some more for readers, who share it with whoever comes', () => {
    const readers = { lane: { shared: true } }
    expect(blockFor(claim({ sections: 0 }, readers), 0)).toBe(16)
    expect(blockFor(claim({ sections: 0, only: {} }, readers), 0)).toBe(16)
    expect(blockFor(claim({ sections: 0 }, { lane: { shared: true, sharers: 40 } }), 0)).toBe(40)
  })

  it('is one for a try, and where leases are not renewed', () => {
    expect(blockFor(claim({ sections: 9, only: {} }), 9)).toBe(1)
    expect(blockFor(claim({ sections: 9 }, { lane: { renew: false } }), 9)).toBe(1)
    expect(blockFor(claim({ sections: 9 }, { lane: { renew: false, shared: true } }), 9)).toBe(1)
  })
})

describe('what a lane is made for', () => {
  const spec = { weight: 1, capacity: 5, ttl: 100, renew: true, fair: 'turns' } as const

  it('follows from its spec', () => {
    expect(laneKind(spec)).toEqual({ ...spec, reads: false, shared: false, most: 5 })
    expect(laneKind({ ...spec, weight: 2 })).toMatchObject({ most: 2 })
    expect(laneKind({ ...spec, capacity: ALL })).toMatchObject({ reads: true, shared: true })
    expect(laneKind({ ...spec, capacity: ALL, renew: false })).toMatchObject({ reads: true, shared: false })
    expect(laneKind({ ...spec, capacity: ALL, weight: ALL })).toMatchObject({
      reads: false,
      shared: false,
      most: 1,
    })
  })

  it('is the same only if all of it is', () => {
    expect(sameSpec(spec, { ...spec })).toBe(true)
    const others = [
      { weight: 2 },
      { capacity: 6 },
      { ttl: 101 },
      { renew: false },
      { fair: 'strict' as const },
    ]
    for (const other of others) expect(sameSpec(spec, { ...spec, ...other })).toBe(false)
  })
})
