import { nonceOf, tombstoneOf } from './keys.ts'
import type { Keys, Places } from './keys.ts'
import type { Connection } from './connection.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not reach locks.
const { Date } = globalThis

/**
 * The commands of the meta protocol that make a lock, and why these.
 *
 * - A lock is taken with `ma … N J`: create a number if there is none. It allocates nothing if there is one; `ms` does so
 *   first, and a server without memory then removes the item that is there: somebody else's lock.
 * - It is renewed and changed with `ma … C T`, arithmetic that compares the CAS value: the difference between two numbers
 *   turns one into the other in place. `mg T` (touch) compares nothing, and would prolong anybody's lock.
 * - It is released with `md … C`.
 * - An arithmetic command that finds the item in use by a reader replaces it, and then sets ttl and CAS value of the one
 *   that it has just thrown away, while its answer says that all went well. So what is left is read again, always.
 */

/** A CAS value that no item has: `ma` with it can create, and never change. */
const NEVER = '18446744073709551615'
/** How long the counter of a name outlives its last use: clocks that differ by less do no harm. */
const FENCE_LIFE_S = 3600
const LONGEST_S = 2_592_000

/** One claim, as it is written on the wire. */
export class ClaimKeys implements Places {
  readonly places: Places
  readonly nonce: string
  private readonly keys: Keys

  constructor(keys: Keys, name: string, id: string) {
    this.places = keys.places(name)
    this.nonce = nonceOf(id)
    this.keys = keys
  }

  get lock(): string {
    return this.places.lock
  }

  get fence(): string {
    return this.places.fence
  }

  get description(): string {
    return this.keys.description(this.nonce)
  }
}

/** What a lock's item was when it was looked at. */
export interface Look {
  /** Undefined: there is none, or the value was not asked for. */
  readonly value: string | undefined
  readonly cas: string
  readonly secondsLeft: number
  readonly found: boolean
}

export function readLook(reply: Reply): Look {
  return {
    value: reply.value,
    cas: reply.flag('c') ?? '',
    // Nothing, or -1 for what never ends, is not one of ours.
    secondsLeft: reply.flagNumber('t') || 0,
    found: reply.code !== 'EN',
  }
}

export const tellTime = (keys: Keys): string => `mg ${keys.clock} t`

export const look = ({ lock }: Places): string => `mg ${lock} c t v`

/** Without the value: a reply that carries one keeps the item in use until it is sent. */
export const glance = ({ lock }: Places): string => `mg ${lock} c t`

/**
 * A claim in one request: create the item if there is none (with a CAS value of our own, also renew it if it is ours
 * already), reserve tokens, look.
 */
export function take(
  connection: Connection,
  { places, nonce }: ClaimKeys,
  seconds: number,
  count: number,
): string {
  const { lock } = places
  const create = connection.ownCas
    ? `ma ${lock} N${seconds} J${nonce} C${nonce} E${nonce} D0 T${seconds}`
    : `ma ${lock} N${seconds} J${nonce} C${NEVER} D0`
  return `${create}\r\n${mint(places, count, seconds)}\r\n${look(places)}`
}

/** Leaves a tombstone if there is nothing. */
export function bury({ lock, nonce }: ClaimKeys, seconds: number): string {
  return `ma ${lock} N${seconds} J${tombstoneOf(nonce)} C${NEVER} D0`
}

interface Change {
  readonly from: string
  readonly to: string
  readonly cas: string
  readonly seconds: number
}

/** Makes one number of another and gives it a new ttl, if it has not been changed since its CAS value was read. */
export function change(
  { ownCas }: Connection,
  { lock, nonce }: ClaimKeys,
  { from, to, cas, seconds }: Change,
): string {
  const difference = from === to ? 0n : BigInt(to) - BigInt(from)
  const step = difference < 0n ? `MD D${-difference}` : `D${difference}`
  const own = ownCas && to === nonce ? ` E${nonce}` : ''
  return `ma ${lock} C${cas} ${step} T${seconds} c${own}`
}

export const remove = ({ lock }: ClaimKeys, cas: string): string => `md ${lock} C${cas}`

/** Reserves `count` tokens; the reply's value is the last of them. A counter that is gone begins at our time. */
export function mint({ fence }: Places, count: number, seconds: number): string {
  const life = fenceLife(seconds)
  return `ma ${fence} N${life} J${firstToken(count)} D${count} T${life} v`
}

const fenceLife = (seconds: number): number => Math.min(seconds + FENCE_LIFE_S, LONGEST_S)

/** Our time in µs, and as many as are reserved. */
const firstToken = (count: number): number => Date.now() * 1000 + count

/** How far others have come; see `contended` in renew.ts. */
export const lastMinted = ({ fence }: ClaimKeys): string => `mg ${fence} v`

export function describe({ description }: ClaimKeys, text: string, seconds: number): string {
  return `ms ${description} ${text.length} T${seconds}\r\n${text}`
}

export const keepDescription = ({ description }: ClaimKeys, seconds: number): string =>
  `mg ${description} T${seconds}`
export const removeDescription = ({ description }: ClaimKeys): string => `md ${description}`
