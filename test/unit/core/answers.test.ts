import { describe, expect, it } from 'vitest'

import {
  CLAIM,
  DOWNGRADE,
  EVENT,
  INSPECT,
  inShort,
  LIST,
  RELEASE,
  RENEW,
  WATCH,
  WITHDRAW,
} from '../../../src/core/answers.ts'
import type { Shape } from '../../../src/core/answers.ts'
import { systemEnv } from '../../../src/runtime/env.ts'

const unknown = { kind: 'unknown', cause: new Error('away') }
const held = { kind: 'held', token: 1n, count: 1, contended: false }
/** No answer to anything. */
const NONSENSE = [
  undefined,
  null,
  0,
  1,
  '',
  'held',
  true,
  [],
  [undefined],
  {},
  { kind: 'nonsense' },
  { kind: 7 },
  () => {},
]
/** A grant without what makes it one. */
const HALVES = [
  { ...held, token: 1 },
  { ...held, token: undefined },
  { ...held, count: 0 },
  { ...held, count: -1 },
  { ...held, count: '1' },
  { ...held, count: undefined },
]
const untimely = (kind: string): object[] =>
  [null, '5', 5n, Number.NaN, {}].map((retryAfter) => ({ kind, retryAfter }))

interface Case {
  readonly shape: Shape
  readonly fits: readonly unknown[]
  readonly not: readonly unknown[]
}

const CASES: Readonly<Record<string, Case>> = {
  claim: {
    shape: CLAIM,
    fits: [
      unknown,
      held,
      { kind: 'queued' },
      { kind: 'queued', retryAfter: 0 },
      { kind: 'busy' },
      { kind: 'busy', retryAfter: Infinity },
      { kind: 'mismatch', capacity: 2 },
    ],
    not: [
      ...HALVES,
      ...untimely('queued'),
      ...untimely('busy'),
      { kind: 'mismatch' },
      { kind: 'mismatch', capacity: '2' },
      { kind: 'renewed' },
    ],
  },
  renew: {
    shape: RENEW,
    fits: [unknown, [], [held, { kind: 'queued' }, { kind: 'renewed' }, { kind: 'lost' }, unknown]],
    not: [
      held,
      { kind: 'renewed' },
      [{ kind: 'renewed' }, { kind: 'busy' }],
      ...HALVES.map((half) => [half]),
      ...untimely('queued').map((answer) => [answer]),
    ],
  },
  release: {
    shape: RELEASE,
    fits: [
      unknown,
      { released: { kind: 'released' } },
      { released: { kind: 'not-held' }, next: held },
      { released: unknown, next: unknown },
    ],
    not: [
      { kind: 'released' },
      { released: { kind: 'lost' } },
      { released: undefined, next: held },
      { released: { kind: 'released' }, next: { kind: 'released' } },
      { released: { kind: 'released' }, next: null },
    ],
  },
  withdraw: {
    shape: WITHDRAW,
    fits: [unknown, { kind: 'released' }, { kind: 'not-held' }],
    not: [held, { kind: 'lost' }],
  },
  downgrade: {
    shape: DOWNGRADE,
    fits: [unknown, { kind: 'downgraded' }, { kind: 'lost' }],
    not: [held, { kind: 'released' }],
  },
  watch: {
    shape: WATCH,
    fits: [unknown, { kind: 'watching', stop: () => {} }],
    not: [{ kind: 'watching' }, { kind: 'watching', stop: 1 }, { kind: 'stopped', stop: () => {} }],
  },
  inspect: {
    shape: INSPECT,
    fits: [unknown, { holders: [], waiters: [] }, { holders: [{ id: 'a.1' }], waiters: [{ id: 'a.2' }] }],
    not: [
      { holders: [] },
      { waiters: [] },
      { holders: [{ id: 1 }], waiters: [] },
      { holders: [], waiters: [null] },
      { holders: 'a', waiters: [] },
    ],
  },
  list: {
    shape: LIST,
    fits: [unknown, { names: [] }, { names: ['a'] }],
    not: [{ names: 'a' }, { names: undefined }],
  },
  event: {
    shape: EVENT,
    fits: [
      { kind: 'gap' },
      { kind: 'freed', name: 'x' },
      { kind: 'contended', name: 'x', id: 'a.1' },
      { kind: 'revoked', name: 'x', id: 'a.1' },
      { ...held, kind: 'granted', name: 'x', id: 'a.1' },
    ],
    not: [
      unknown,
      { kind: 'freed' },
      { kind: 'freed', name: 1 },
      { kind: 'contended', name: 'x' },
      { kind: 'revoked', id: 'a.1' },
      { kind: 'granted', name: 'x', id: 'a.1' },
      { kind: 'lost', name: 'x', id: 'a.1' },
      ...HALVES.map((half) => ({ ...half, kind: 'granted', name: 'x', id: 'a.1' })),
    ],
  },
}

describe.each(Object.entries(CASES))('what a store may answer: %s', (method, { shape, fits, not }) => {
  it('is let through, whatever else it has', () => {
    for (const answer of fits) expect([answer, shape.fits(answer)]).toEqual([answer, true])
    expect(shape.method).toBe(method === 'event' ? 'watch' : method)
  })

  it('is told from everything else', () => {
    const nonsense = method === 'renew' ? NONSENSE.filter((one) => JSON.stringify(one) !== '[]') : NONSENSE
    for (const answer of [...not, ...nonsense]) expect([answer, shape.fits(answer)]).toEqual([answer, false])
  })
})

describe('an answer in words', () => {
  it('says what it was, and nothing that may be secret', () => {
    const id = `${systemEnv.randomId()}.1`
    expect(inShort(undefined)).toBe('undefined')
    expect(inShort(null)).toBe('null')
    expect(inShort(7)).toBe('7')
    expect(inShort(() => 'secret')).toBe('a function')
    expect(inShort('held')).toBe('"held"')
    expect(inShort(id)).toBe('a text')
    expect(inShort({ kind: id })).toBe('{ kind: a text … }')
    expect(inShort(['secret'])).toBe('an array')
    expect(inShort([{ kind: 'lost' }, { kind: 'busy', id }], RENEW.each)).toBe(
      'an array with { kind: "busy" … }',
    )
    expect(inShort([undefined], RENEW.each)).toBe('an array with undefined')
    expect(inShort({ id: 'secret' })).toBe('an object without a kind')
    expect(inShort({ kind: 3, id: 'secret' })).toBe('an object without a kind')
    expect(inShort({ kind: 'granted', id: 'secret' })).toBe('{ kind: "granted" … }')
    expect(inShort({ kind: 'x'.repeat(100) })).toBe('{ kind: a text … }')
  })
})
