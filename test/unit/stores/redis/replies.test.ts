import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { ExtendRequest } from '../../../../src/core/contract.ts'
import * as votes from '../../../../src/stores/redis/votes/wire.ts'
import * as wire from '../../../../src/stores/redis/wire.ts'

/** What a script can say, and what it means; everything else has no meaning. */
interface Reader {
  readonly read: (reply: unknown) => unknown
  /** A reply of the script's, in its usual form. */
  readonly proper: fc.Arbitrary<unknown>
  readonly isProper: (reply: unknown) => boolean
}

const EXTENDS = [{ tokens: 0 }, { tokens: 3 }] as unknown as readonly ExtendRequest[]

const text = (reply: unknown): string | undefined =>
  typeof reply === 'string' ||
  typeof reply === 'bigint' ||
  typeof reply === 'number' ||
  Buffer.isBuffer(reply)
    ? String(reply)
    : undefined
const blob = (reply: unknown): string | undefined =>
  typeof reply === 'string' || Buffer.isBuffer(reply) ? String(reply) : undefined
const like = (pattern: RegExp, reply: string | undefined): boolean =>
  reply !== undefined && pattern.test(reply)
const list = (reply: unknown, length: number): readonly unknown[] | undefined =>
  Array.isArray(reply) && reply.length === length ? (reply as readonly unknown[]) : undefined

const NUMBER = '(0|[1-9]\\d{0,15})'
const TOKEN = '[1-9]\\d{0,18}'
const CLAIM = new RegExp(`^([1-9]\\d{6,18}|h${TOKEN} \\d{1,10} [01]|q|q${NUMBER}|b|b${NUMBER}|m${NUMBER})$`)
const RENEWAL = new RegExp(`^([012]|q|q${NUMBER}|h${TOKEN} \\d{1,10} [01])$`)
const VOTE = new RegExp(`^([1-9]\\d{6,18}|g${TOKEN} \\d{1,10} [01]|b|b${NUMBER}|n${NUMBER})$`)
const EXTENSION = new RegExp(`^([12efl]|n${NUMBER}|x.*|g${TOKEN} [01])$`, 's')

const token = fc.integer({ min: 1e15, max: 2 ** 52 })
const ms = fc.nat({ max: 1e9 })
const aClaim = fc.oneof(
  fc.constantFrom('q', 'b'),
  token.map(String),
  fc.tuple(token, ms, fc.nat({ max: 1 })).map(([first, count, more]) => `h${first} ${count} ${more}`),
  ms.map((left) => `b${left}`),
  ms.map((capacity) => `m${capacity}`),
)
const aRenewal = fc.oneof(fc.nat({ max: 2 }), fc.constantFrom('q', 'q250', 'h1700000000000000 4 1'))
const aVote = fc.oneof(token, fc.constantFrom('b', 'b12', 'n900', 'g1700000000000000 4 1'))
const anExtension = fc.constantFrom<unknown>(1, 2, 'e', 'f', 'l', 'n12', 'g1700000000000000 1')
const done = fc.nat({ max: 1 })
const isDone = (reply: unknown): boolean => like(/^[01]$/, text(reply))

const READERS: Readonly<Record<string, Reader>> = {
  'a claim': {
    read: (reply) => wire.readClaim(reply, 1),
    proper: aClaim,
    isProper: (reply) => like(CLAIM, blob(reply)),
  },
  'a renewal': {
    read: wire.readRenewal,
    proper: aRenewal,
    isProper: (reply) => like(RENEWAL, text(reply)),
  },
  'many renewals': {
    read: (reply) => wire.readKept(reply, 3),
    proper: fc.oneof(fc.constant(1), fc.tuple(done, done, done)),
    isProper: (reply) =>
      Array.isArray(reply) ? list(reply, 3)?.every(isDone) === true : like(/^1$/, text(reply)),
  },
  'a release': { read: wire.readRelease, proper: done, isProper: isDone },
  'a withdrawal': { read: wire.readReleased, proper: done, isProper: isDone },
  'a downgrade': { read: wire.readDowngraded, proper: done, isProper: isDone },
  'a release and a claim': {
    read: (reply) => wire.readReleaseAndNext(reply, 1),
    proper: fc.tuple(done, aClaim),
    isProper: (reply) => {
      const parts = list(reply, 2)
      return parts !== undefined && isDone(parts[0]) && like(CLAIM, blob(parts[1]))
    },
  },
  'a vote': {
    read: (reply) => votes.readVote(reply, 1),
    proper: aVote,
    isProper: (reply) => like(VOTE, text(reply)),
  },
  'a confirmation': {
    read: votes.readConfirm,
    proper: fc.constantFrom('c', 'l', 'f'),
    isProper: (reply) => like(/^[clf]$/, text(reply)),
  },
  extensions: {
    read: (reply) => votes.readExtensions(reply, EXTENDS),
    proper: fc.tuple(anExtension, anExtension),
    isProper: (reply) => list(reply, 2)?.every((one) => like(EXTENSION, text(one))) === true,
  },
  'a vote that is given up': { read: votes.readGone, proper: done, isProper: isDone },
  'whether a node votes': {
    read: votes.readReadiness,
    proper: fc.constantFrom('y', 'n0', 'n900'),
    isProper: (reply) => like(/^(y|n(0|[1-9]\d{0,15}))$/, text(reply)),
  },
}

/** The forms in which drivers can be told to give the same reply. */
const FORMS: readonly ((reply: unknown) => unknown)[] = [
  (reply) => (typeof reply === 'number' ? String(reply) : reply),
  (reply) => (typeof reply === 'number' ? BigInt(reply) : reply),
  (reply) => Buffer.from(String(reply)),
  (reply) => (typeof reply === 'string' ? Buffer.from(reply) : reply),
]
const inForm = (form: (reply: unknown) => unknown, reply: unknown): unknown =>
  Array.isArray(reply) ? reply.map((one) => inForm(form, one)) : form(reply)

/** From nonsense to near misses: pieces of real replies, cut and put together. */
const pieces = fc.constantFrom(
  'h',
  'q',
  'b',
  'm',
  'g',
  'n',
  'e',
  '0',
  '1',
  '2',
  '12',
  ' ',
  '-',
  '+',
  '.',
  'x',
  '\n',
)
const scalar: fc.Arbitrary<unknown> = fc.oneof(
  fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join('')),
  fc.string(),
  fc.integer(),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined, NaN, -0, Infinity, {}, 'OK', 'QUEUED', Symbol('x')),
  aClaim.map((reply) => `${reply} `),
  aVote.map((reply) => `${reply}0x`),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
)
const garbage: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 4 }) },
)

/** What nobody may believe without having been told. */
const KINDS = /held|renewed|granted|confirmed|released|downgraded|queued|lost|busy|not-held/

function kindsIn(answer: unknown): string {
  return JSON.stringify(answer, (key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : key === 'cause' ? undefined : value,
  )
}

/** What cannot be read is an error of the kind that stands for that, and no other. */
function readOrUnknown(read: (reply: unknown) => unknown, reply: unknown): unknown {
  try {
    return read(reply)
  } catch (error) {
    if (error instanceof TypeError && error.message.includes('no script of this store')) return 'unknown'
    throw error
  }
}

describe.each(Object.entries(READERS))('the reply to %s', (_, { read, proper, isProper }) => {
  it('means the same in every form that a driver may give it', () => {
    fc.assert(
      fc.property(proper, fc.constantFrom(...FORMS), (reply, form) => {
        expect(read(inForm(form, reply))).toEqual(read(reply))
      }),
    )
  })

  it('means nothing if it is not one', () => {
    fc.assert(
      fc.property(garbage, (reply) => {
        if (isProper(reply)) return
        let answer = readOrUnknown(read, reply)
        // Of many in one reply, each is read by itself.
        if (Array.isArray(answer))
          answer = answer.filter(
            (one, at) => !KINDS.test(kindsIn(one)) || !like(EXTENSION, text((reply as unknown[])[at])),
          )
        expect(kindsIn(answer)).not.toMatch(KINDS)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('what a name or a cell looks like', () => {
  const READ = [
    (reply: unknown) => wire.readName('n', reply),
    (reply: unknown) => votes.readHolder('n', reply),
  ]

  it.each(READ)('is not made up', (read) => {
    fc.assert(
      fc.property(fc.array(scalar, { minLength: 1, maxLength: 12 }), (reply) => {
        fc.pre(reply.some((one) => text(one) === undefined || !/^\d+$/.test(text(one) ?? '')))
        const info = readOrUnknown(read, reply) as {
          readonly holders?: readonly { readonly token?: bigint }[]
          readonly token?: bigint
        }
        for (const holder of info.holders ?? []) expect(holder.token).toBeGreaterThan(0n)
        expect(info.token ?? 1n).toBeGreaterThan(0n)
      }),
    )
  })
})
