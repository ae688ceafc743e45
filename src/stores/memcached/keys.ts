import { createHash } from 'node:crypto'

import { InvalidArgumentError } from '../../core/errors.ts'

/**
 * Where things are kept. A key on the wire has up to 250 bytes, no spaces and no control characters; a name that does
 * not fit is replaced by its hash. Plain and hashed names have letters of their own (`l` and `L`), so none can pose as
 * another, and nothing of a name can end a command or begin one.
 */
export interface Keys {
  lock(name: string): string
  /** The counter that gives a name its tokens. */
  fence(name: string): string
  /** Who holds a lock, in words, by the nonce in it. */
  description(nonce: string): string
  /** An item that only lives to tell the server's time. */
  readonly clock: string
  /** Never stored; asked for to see what the server understands. */
  readonly probe: string
}

const LONGEST_PREFIX = 100
/** With the longest prefix and two more characters still below the server's 250. */
const LONGEST_PLAIN = 140
const ON_THE_WIRE = /^[!-~]+$/

export function keysFor(prefix: string): Keys {
  if (!ON_THE_WIRE.test(prefix) || prefix.length > LONGEST_PREFIX) {
    throw new InvalidArgumentError(
      `prefix must be 1 to ${LONGEST_PREFIX} printable ASCII characters without spaces`,
      { argument: 'prefix' },
    )
  }
  const place = (plain: string, hashed: string, name: string): string =>
    name.length <= LONGEST_PLAIN && ON_THE_WIRE.test(name)
      ? `${prefix}${plain}:${name}`
      : `${prefix}${hashed}:${createHash('sha256').update(name).digest('base64url')}`
  return {
    lock: (name) => place('l', 'L', name),
    fence: (name) => place('f', 'F', name),
    description: (nonce) => `${prefix}d:${nonce}`,
    clock: `${prefix}clock`,
    probe: `${prefix}probe`,
  }
}

/**
 * A lock's item holds one number: the holder's nonce, which is even, or, where a claim was withdrawn, its nonce plus one.
 * All of them have 19 digits, so that the server can change one into another in place.
 */
const LOWEST = 2n ** 62n
const PLACES = 2n ** 61n

/** What `inspect` calls a claim of which it knows no more than the nonce. `release` takes it. */
const BARE = /^#(\d{19})$/
/** How the runtime names claims: the session and a number, written in one way only. */
const NUMBERED = /^(.*)\.(0|[1-9a-z][0-9a-z]{0,9})$/s

/** The last session that was asked for. A process mostly has one, and hashing costs as much as all the rest of a claim. */
let session = ''
let placeOfSession = 0n

/** A claim's number on the wire: a hash of the session, plus the claim's number in it. */
export function nonceOf(id: string): string {
  const bare = BARE.exec(id)?.[1]
  if (bare !== undefined) return bare
  const [, of = id, number = '0'] = NUMBERED.exec(id) ?? []
  if (of !== session) {
    session = of
    placeOfSession = createHash('sha256').update(of).digest().readBigUInt64BE()
  }
  return (((placeOfSession + BigInt(Number.parseInt(number, 36))) % PLACES) * 2n + LOWEST).toString()
}

export function bareId(nonce: string): string {
  return `#${nonce}`
}

/** The mark that a withdrawn claim leaves in place of its nonce. */
export function tombstoneOf(nonce: string): string {
  return (BigInt(nonce) + 1n).toString()
}

export function isTombstone(value: string): boolean {
  return (value.charCodeAt(value.length - 1) & 1) === 1
}

/** Whether a lock's item is one of ours. */
export function isOurs(value: string | undefined): value is string {
  return value !== undefined && /^\d{19}$/.test(value)
}
