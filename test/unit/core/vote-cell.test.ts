import { beforeEach, describe, expect, it } from 'vitest'

import type { ExtendRequest, VoteRequest } from '../../../src/core/contract.ts'
import {
  ATTEMPTS,
  confirm,
  emptyCell,
  extend,
  isIdleCell,
  release,
  viewCell,
  vote,
  withdraw,
} from '../../../src/core/vote-cell.ts'
import type { CellAnswer, CellNotice, VoteCell } from '../../../src/core/vote-cell.ts'

/** One store's part in a quorum; the model beside this file goes through orders of events, this one through the answers. */

const SECOND = 1_000_000
const START = 1_000 * SECOND

let cell: VoteCell
let ms: number
let heard: CellNotice[]

beforeEach(() => {
  cell = emptyCell()
  ms = 0
  heard = []
})

const now = () => ({ ms, micros: START + ms * 1_000 })
const asked = (id: string, more: Partial<VoteRequest> = {}): CellAnswer =>
  vote(
    cell,
    { name: 'x', id, attempt: 1, ttl: 1_000, tokens: 1, owner: 'me', probation: 0, interest: false, ...more },
    now(),
    heard,
  )
const extended = (id: string, token: number, more: Partial<ExtendRequest> = {}): CellAnswer => {
  const [from, to] = [BigInt(token), BigInt(token)]
  const usual = { attempt: 1, owner: 'me', ttl: 1_000, probation: 0, tokens: 0, mode: 'keep' } as const
  return extend(cell, { name: 'x', id, ...usual, token: from, top: to, ...more }, now())
}
const confirmed = (
  id: string,
  token: number,
  more: { attempt?: number; base?: number; count?: number } = {},
) =>
  confirm(
    cell,
    {
      name: 'x',
      id,
      attempt: more.attempt ?? 1,
      base: BigInt(more.base ?? token),
      token: BigInt(token),
      count: more.count ?? 1,
    },
    now(),
  )
const released = (
  id: string,
  more: { attempt?: number; tell?: boolean; reachable?: (s: string) => boolean } = {},
) =>
  release(
    cell,
    { name: 'x', id, attempt: more.attempt ?? 1 },
    { now: now(), tell: more.tell ?? true, reachable: more.reachable ?? (() => true) },
    heard,
  )
const granted = (token: number, count = 1, contended = false): CellAnswer => ({
  kind: 'granted',
  token,
  count,
  contended,
})
const seen = () => viewCell(cell, 'x', now())

describe('a vote', () => {
  it('is given to who comes first, with tokens that begin with the second', () => {
    ms = 1_500
    expect(asked('a.1', { tokens: 3 })).toEqual(granted(START + SECOND, 3))
    expect(cell.fence).toBe(START + SECOND + 2)
    expect(seen()).toEqual({
      name: 'x',
      id: 'a.1',
      attempt: 1,
      owner: 'me',
      token: BigInt(START + SECOND),
      expiresIn: 1_000,
    })
  })

  it('is refused to others for as long as that lasts, and no longer', () => {
    asked('a.1')
    ms = 400
    expect(asked('b.1')).toEqual({ kind: 'busy', retryAfter: 600 })
    ms = 999
    expect(asked('b.1')).toEqual({ kind: 'busy', retryAfter: 1 })
    ms = 1_000
    expect(seen()).toEqual({ kind: 'free' })
    // The second has begun meanwhile.
    expect(asked('b.1')).toEqual(granted(START + SECOND))
  })

  it('has tokens above all that were given within the same second', () => {
    asked('a.1', { tokens: 5 })
    released('a.1')
    expect(asked('b.1', { tokens: 2 })).toEqual(granted(START + 5, 2))
    released('b.1')
    expect(asked('c.1')).toEqual(granted(START + 7))
  })

  it('that is asked for twice is the same, and lasts from the second time on', () => {
    asked('a.1', { tokens: 3 })
    ms = 700
    expect(asked('a.1', { tokens: 3 })).toEqual(granted(START, 3))
    ms = 1_600
    expect(asked('b.1')).toEqual({ kind: 'busy', retryAfter: 100 })
  })

  it('for a later attempt of the same claim is a new one; an earlier one comes too late', () => {
    asked('a.1', { attempt: 2, tokens: 2 })
    expect(asked('a.1', { attempt: 1 })).toMatchObject({ kind: 'busy' })
    expect(asked('a.1', { attempt: 3 })).toEqual(granted(START + 2))
    expect(seen()).toMatchObject({ attempt: 3 })
  })

  it('for the same claim by another client is none: that has given up nothing of this one’s', () => {
    asked('a.1', { attempt: ATTEMPTS + 2 })
    for (const attempt of [1, 3, 2 * ATTEMPTS, 3 * ATTEMPTS + 2])
      expect(asked('a.1', { attempt })).toMatchObject({ kind: 'busy' })
    expect(asked('a.1', { attempt: ATTEMPTS + 3 })).toMatchObject({ kind: 'granted' })
  })

  it('is refused to a claim that was withdrawn, for a minute', () => {
    withdraw(cell, { name: 'x', id: 'a.1' }, now())
    expect(asked('a.1')).toEqual({ kind: 'busy' })
    expect(asked('b.1').kind).toBe('granted')
    released('b.1')
    ms = 59_999
    expect(asked('a.1')).toEqual({ kind: 'busy' })
    ms = 60_000
    expect(asked('a.1').kind).toBe('granted')
  })
})

describe('who wants to hear', () => {
  it('is told of to the holder, the first one only', () => {
    asked('a.1')
    asked('b.1')
    expect(heard).toEqual([])
    asked('b.1', { interest: true })
    expect(heard).toEqual([{ session: 'a', event: { kind: 'contended', name: 'x', id: 'a.1' } }])
    asked('c.1', { interest: true })
    expect(heard).toHaveLength(1)
  })

  it('of a release is told of it, the first one and once', () => {
    asked('a.1')
    asked('b.1', { interest: true })
    asked('c.1', { interest: true })
    asked('b.2', { interest: true })
    asked('d.1')
    heard = []
    released('a.1')
    expect(heard).toEqual([{ session: 'b', event: { kind: 'freed', name: 'x' } }])
    asked('e.1')
    released('e.1')
    expect(heard.map(({ session }) => session)).toEqual(['b', 'c'])
    asked('e.2')
    released('e.2')
    expect(heard).toHaveLength(2)
  })

  it('and cannot be told is passed over, and forgotten', () => {
    asked('a.1')
    for (const id of ['b.1', 'c.1', 'd.1']) asked(id, { interest: true })
    heard = []
    released('a.1', { reachable: (session) => session === 'd' })
    expect(heard.map(({ session }) => session)).toEqual(['d'])
    expect(cell.interested.size).toBe(0)
  })

  it('is told nothing of what is given back unused', () => {
    asked('a.1')
    asked('b.1', { interest: true })
    heard = []
    expect(released('a.1', { tell: false })).toEqual({ kind: 'released' })
    expect(heard).toEqual([])
    expect(cell.interested.size).toBe(1)
  })

  it('makes the holder hear of it, once, and everybody who is granted it later', () => {
    asked('a.1')
    asked('b.1')
    expect(heard).toEqual([])
    asked('b.1', { interest: true })
    asked('c.1', { interest: true })
    expect(heard).toEqual([{ session: 'a', event: { kind: 'contended', name: 'x', id: 'a.1' } }])
    expect(extended('a.1', START)).toEqual({ kind: 'renewed', contended: true })
    expect(extended('a.1', START, { tokens: 1 })).toMatchObject({ kind: 'granted', contended: true })
    released('a.1')
    expect(asked('d.1')).toMatchObject({ contended: true })
  })
})

describe('a token that others proposed', () => {
  beforeEach(() => void asked('a.1', { tokens: 2 }))

  it('is accepted from who holds it, and those given later are above it', () => {
    expect(confirmed('a.1', START + 50, { count: 4 })).toEqual({ kind: 'confirmed' })
    expect(seen()).toMatchObject({ token: BigInt(START + 50) })
    released('a.1')
    expect(asked('b.1')).toEqual(granted(START + 54))
  })

  it('that is smaller takes nothing back', () => {
    confirmed('a.1', START + 50, { count: 4 })
    expect(confirmed('a.1', START + 10, { count: 4 })).toEqual({ kind: 'confirmed' })
    expect(seen()).toMatchObject({ token: BigInt(START + 50) })
    expect(cell.fence).toBe(START + 53)
    // Nor does a copy of the first.
    expect(confirmed('a.1', START + 50, { count: 4 })).toEqual({ kind: 'confirmed' })
    expect(extended('a.1', START + 50, { top: BigInt(START + 53) })).toMatchObject({ kind: 'renewed' })
  })

  it('is not accepted from anybody else, from another attempt, or when it has ended', () => {
    expect(confirmed('b.1', START + 50)).toEqual({ kind: 'lost' })
    expect(confirmed('a.1', START + 50, { attempt: 2 })).toEqual({ kind: 'lost' })
    ms = 1_000
    expect(confirmed('a.1', START + 50)).toEqual({ kind: 'lost' })
    expect(cell.fence).toBe(START + 1)
  })

  it('is not accepted where the claim began to hold it after that', () => {
    expect(confirmed('a.1', START + 50, { base: START - 1 })).toEqual({ kind: 'fenced' })
    expect(confirmed('a.1', START + 50, { base: START })).toEqual({ kind: 'confirmed' })
  })
})

describe('a renewal', () => {
  beforeEach(() => void asked('a.1', { tokens: 2 }))
  const top = { top: BigInt(START + 1) }

  it('makes it last, without new tokens', () => {
    ms = 900
    expect(extended('a.1', START, { ...top, ttl: 500 })).toEqual({ kind: 'renewed', contended: false })
    expect(seen()).toMatchObject({ expiresIn: 500, token: BigInt(START) })
    expect(cell.fence).toBe(START + 1)
  })

  it('gives new tokens above all before', () => {
    expect(extended('a.1', START, { ...top, tokens: 3 })).toEqual(granted(START + 2, 3))
    expect(cell.fence).toBe(START + 4)
    expect(seen()).toMatchObject({ token: BigInt(START + 2) })
  })

  it('is refused to others, to other attempts, and to who was overtaken', () => {
    expect(extended('b.1', START + 9, { top: BigInt(START + 9) })).toEqual({ kind: 'lost' })
    expect(extended('b.1', START)).toEqual({ kind: 'fenced' })
    expect(extended('a.1', START, { ...top, attempt: 2 })).toEqual({ kind: 'lost' })
    released('a.1')
    asked('b.1')
    expect(extended('a.1', START, top)).toEqual({ kind: 'fenced' })
    released('b.1')
    // Nobody has it now, but somebody had.
    expect(extended('a.1', START, top)).toEqual({ kind: 'fenced' })
    expect(extended('a.1', START, { ...top, mode: 'restore' })).toEqual({ kind: 'fenced' })
  })

  it('of a claim that began here anew, after its tokens were given, comes from the past', () => {
    released('a.1')
    asked('a.1', { attempt: 1 })
    expect(extended('a.1', START, top)).toEqual({ kind: 'fenced' })
  })

  it('is not kept where it was forgotten, and restored if that is asked for', () => {
    ms = 1_000
    expect(extended('a.1', START, top)).toEqual({ kind: 'free' })
    expect(seen()).toEqual({ kind: 'free' })
    expect(extended('a.1', START, { ...top, mode: 'restore' })).toEqual({ kind: 'renewed', contended: false })
    expect(seen()).toMatchObject({
      id: 'a.1',
      attempt: 1,
      owner: 'me',
      token: BigInt(START),
      expiresIn: 1_000,
    })
    expect(cell.holder).toMatchObject({ count: 2, created: START })
  })

  it('is not restored when it was withdrawn', () => {
    released('a.1')
    withdraw(cell, { name: 'x', id: 'a.1' }, now())
    expect(extended('a.1', START, { ...top, mode: 'restore' })).toEqual({ kind: 'fenced' })
    ms = 60_000
    expect(extended('a.1', START, { ...top, mode: 'restore' })).toMatchObject({ kind: 'renewed' })
  })

  it('brings along the block that others agreed on', () => {
    const block = { token: BigInt(START + 20), top: BigInt(START + 29) }
    expect(extended('a.1', START, block)).toEqual({ kind: 'renewed', contended: false })
    expect(cell.holder).toMatchObject({ token: START + 20, count: 10 })
    expect(cell.fence).toBe(START + 29)
    // One that is older than that takes nothing back.
    expect(extended('a.1', START, { top: BigInt(START + 1) })).toMatchObject({ kind: 'renewed' })
    expect(cell.holder).toMatchObject({ token: START + 20, count: 10 })
  })
})

describe('a release', () => {
  it('is of the attempt that holds it, or of any if it says so', () => {
    asked('a.1', { attempt: 2 })
    expect(released('a.1', { attempt: 1 })).toEqual({ kind: 'not-held' })
    expect(released('b.1', { attempt: 2 })).toEqual({ kind: 'not-held' })
    expect(released('a.1', { attempt: 2 })).toEqual({ kind: 'released' })
    expect(released('a.1', { attempt: 2 })).toEqual({ kind: 'not-held' })
    asked('a.2', { attempt: 3 })
    expect(released('a.2', { attempt: 0 })).toEqual({ kind: 'released' })
    expect(seen()).toEqual({ kind: 'free' })
  })

  it('of what has run out is none', () => {
    asked('a.1')
    ms = 1_000
    expect(released('a.1')).toEqual({ kind: 'not-held' })
  })
})

describe('a cell that may be forgotten', () => {
  it('has no holder, and refuses nobody', () => {
    expect(isIdleCell(cell, now())).toBe(true)
    asked('a.1')
    expect(isIdleCell(cell, now())).toBe(false)
    ms = 999
    expect(isIdleCell(cell, now())).toBe(false)
    ms = 1_000
    expect(isIdleCell(cell, now())).toBe(true)
    withdraw(cell, { name: 'x', id: 'b.1' }, now())
    ms = 60_999
    expect(isIdleCell(cell, now())).toBe(false)
    ms = 61_000
    expect(isIdleCell(cell, now())).toBe(true)
  })

  it('keeps no list of all that was ever withdrawn', () => {
    for (let at = 0; at < 10; at++) {
      withdraw(cell, { name: 'x', id: `a.${at}` }, now())
      ms += 30_000
    }
    expect(cell.withdrawn.size).toBeLessThanOrEqual(2)
    expect(asked('a.9')).toEqual({ kind: 'busy' })
  })
})
