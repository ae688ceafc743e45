import { hash } from 'node:crypto'

import { InvalidArgumentError } from '../../core/errors.ts'

/**
 * Where things are kept. A key on the wire has up to 250 bytes, no spaces and no control characters; a name that does
 * not fit is replaced by its hash. Plain and hashed names have letters of their own (`l` and `L`), so none can pose as
 * another, and nothing of a name can end a command or begin one.
 */
export interface Keys {
  places(name: string): Places
  /** Who holds a lock, in words, by the nonce in it. */
  description(nonce: string): string
  /** An item that only lives to tell the server's time. */
  readonly clock: string
  /** Never stored; asked for to see what the server understands. */
  readonly probe: string
}

/** The keys of one name. */
export interface Places {
  readonly lock: string
  /** The counter that gives it its tokens. */
  readonly fence: string
}

const LONGEST_PREFIX = 100
/** With the longest prefix and two more characters still below the server's 250. */
const LONGEST_PLAIN = 140
const ZERO = 48
const ON_THE_WIRE = /^[!-~]+$/

export function keysFor(prefix: string): Keys {
  if (!ON_THE_WIRE.test(prefix) || prefix.length > LONGEST_PREFIX) {
    throw new InvalidArgumentError(
      `prefix must be 1 to ${LONGEST_PREFIX} printable ASCII characters without spaces`,
      { argument: 'prefix' },
    )
  }
  let name = ''
  let places: Places = { lock: '', fence: '' }
  return {
    places: (wanted) => {
      // Mostly the same as before: a release after its claim, a poll after a poll.
      if (wanted === name) return places
      name = wanted
      const [l, f, rest] = fits(wanted) ? ['l', 'f', wanted] : ['L', 'F', hash('sha256', wanted, 'base64url')]
      places = { lock: `${prefix}${l}:${rest}`, fence: `${prefix}${f}:${rest}` }
      return places
    },
    description: (nonce) => `${prefix}d:${nonce}`,
    clock: `${prefix}clock`,
    probe: `${prefix}probe`,
  }
}

function fits(name: string): boolean {
  return name.length <= LONGEST_PLAIN && ON_THE_WIRE.test(name)
}

/**
 * A lock's item holds one number of 19 digits: the holder's nonce, which is even, or, where a claim was withdrawn, its
 * nonce plus one. All have the same length, so that the server can change one into another in place.
 *
 * A nonce is ten digits of the session's hash, and nine that begin elsewhere for every session and go up with its claims.
 */
const LOWEST = 100_000_000
const SPAN = 900_000_000

interface Origin {
  readonly upper: string
  readonly lower: number
}

/** What `inspect` calls a claim of which it knows no more than the nonce. `release` takes it. */
const BARE = /^#(\d{19})$/

export function bareId(nonce: string): string {
  return `#${nonce}`
}

export function nonceOf(id: string): string {
  const bare = BARE.exec(id)?.[1]
  if (bare !== undefined) return bare
  const from = id.lastIndexOf('.') + 1
  const number = from > 0 ? numberAt(id, from) : -1
  return number < 0 ? nonceFrom(originOf(`${id}/`), 0) : nonceFrom(originOf(id.slice(0, from)), number)
}

function nonceFrom({ upper, lower }: Origin, number: number): string {
  return upper + (LOWEST + ((lower + number * 2) % SPAN))
}

function originOf(text: string): Origin {
  // As text, which is made in less than half of the time that a buffer takes.
  const hex = hash('sha256', text, 'hex')
  return {
    upper: (5_000_000_000 + (Number.parseInt(hex.slice(0, 12), 16) % 4_000_000_000)).toString(),
    lower: (Number.parseInt(hex.slice(12, 20), 16) % (SPAN / 2)) * 2,
  }
}

/** The number that an id ends with; -1 unless it is written as the runtime writes it: two ids must not mean the same. */
function numberAt(id: string, from: number): number {
  const { length } = id
  if (from >= length || length - from > 15) return -1
  let number = 0
  for (let at = from; at < length; at++) {
    const digit = id.charCodeAt(at) - ZERO
    if (!(digit >= 0 && digit <= 9)) return -1
    number = number * 10 + digit
  }
  return id.charCodeAt(from) === ZERO && length - from > 1 ? -1 : number
}

/** The mark that a withdrawn claim leaves in place of its nonce. */
export function tombstoneOf(nonce: string): string {
  return nonce.slice(0, -1) + String.fromCharCode(nonce.charCodeAt(nonce.length - 1) + 1)
}

export function isTombstone(value: string): boolean {
  return (value.charCodeAt(value.length - 1) & 1) === 1
}

/** Whether a lock's item is one of ours. */
export function isOurs(value: string | undefined): value is string {
  return value !== undefined && /^\d{19}$/.test(value)
}
