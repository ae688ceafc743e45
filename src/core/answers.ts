/**
 * What a store may answer to each call. Anybody can write a store, and one that resolves `undefined` or spells a kind in its own way
 * must be told from one that does not answer, by the name of the method. A look at an answer costs a few nanoseconds.
 */

interface Answer {
  readonly kind?: unknown
  readonly token?: unknown
  readonly count?: unknown
  readonly capacity?: unknown
  readonly retryAfter?: unknown
  readonly contended?: unknown
  readonly mark?: unknown
  readonly cause?: unknown
  readonly retryable?: unknown
  readonly stop?: unknown
  readonly released?: unknown
  readonly next?: unknown
}

/** One method of a store, and whether an answer is one of its answers. */
export interface Shape {
  readonly method: string
  readonly fits: (answer: unknown) => boolean
  /** Where the answer is a list of answers: whether one of them is. */
  readonly each?: (answer: unknown) => boolean
}

const look = (answer: unknown): Answer => (answer ?? NOTHING) as Answer
const NOTHING: Answer = {}

const isGrant = ({ token, count }: Answer): boolean =>
  typeof token === 'bigint' && Number.isSafeInteger(count) && (count as number) >= 1

/** A time that is none (null from a database, a bigint) would be waited for as if it were no time at all, or not be counted with. */
const isTimely = ({ retryAfter }: Answer): boolean =>
  retryAfter === undefined || (typeof retryAfter === 'number' && !Number.isNaN(retryAfter))

/** A field that may be anything. One that throws when it is read does so here, where that is an answer too. */
const isRead = (_field: unknown): boolean => true

const saysUnknown = ({ kind, cause, retryable }: Answer): boolean =>
  kind === 'unknown' && isRead(cause) && isRead(retryable)

function fitsClaim(answer: unknown): boolean {
  const seen = look(answer)
  switch (seen.kind) {
    case 'held':
      return isGrant(seen) && isRead(seen.contended)
    case 'queued':
      return isTimely(seen)
    case 'busy':
      return isTimely(seen) && isRead(seen.mark)
    case 'unknown':
      return saysUnknown(seen)
    case 'mismatch':
      return typeof seen.capacity === 'number'
    default:
      return false
  }
}

function fitsRenewal(answer: unknown): boolean {
  const seen = look(answer)
  if (seen.kind === 'held') return isGrant(seen) && isRead(seen.contended)
  if (seen.kind === 'queued') return isTimely(seen)
  if (seen.kind === 'renewed') return isRead(seen.contended)
  return seen.kind === 'lost' || saysUnknown(seen)
}

function fitsRelease(answer: unknown): boolean {
  const { kind } = look(answer)
  return kind === 'released' || kind === 'not-held' || isUnknown(answer)
}

const isUnknown = (answer: unknown): boolean => saysUnknown(look(answer))

const isList = (value: unknown): boolean => Array.isArray(value)

const isClaims = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((claim: unknown) => typeof (look(claim) as { readonly id?: unknown }).id === 'string')

export const CLAIM: Shape = { method: 'claim', fits: fitsClaim }
export const RENEW: Shape = {
  method: 'renew',
  fits: (answer) => isUnknown(answer) || (Array.isArray(answer) && answer.every(fitsRenewal)),
  each: fitsRenewal,
}
export const RELEASE: Shape = {
  method: 'release',
  fits: (answer) => {
    if (isUnknown(answer)) return true
    const { released, next } = look(answer)
    return fitsRelease(released) && (next === undefined || fitsClaim(next))
  },
}
export const WITHDRAW: Shape = { method: 'withdraw', fits: fitsRelease }
export const DOWNGRADE: Shape = {
  method: 'downgrade',
  fits: (answer) => {
    const { kind } = look(answer)
    return kind === 'downgraded' || kind === 'lost' || isUnknown(answer)
  },
}
export const GUARDS: Shape = { method: 'guards', fits: (answer) => typeof answer === 'boolean' }
export const WATCH: Shape = {
  method: 'watch',
  fits: (answer) => {
    const { kind, stop } = look(answer)
    return isUnknown(answer) || (kind === 'watching' && typeof stop === 'function')
  },
}
export const INSPECT: Shape = {
  method: 'inspect',
  fits: (answer) => {
    const { holders, waiters } = look(answer) as { readonly holders?: unknown; readonly waiters?: unknown }
    return isUnknown(answer) || (isClaims(holders) && isClaims(waiters))
  },
}
export const LIST: Shape = {
  method: 'list',
  fits: (answer) => isUnknown(answer) || isList((look(answer) as { readonly names?: unknown }).names),
}
/** What a store tells of its own accord. */
export const EVENT: Shape = {
  method: 'watch',
  fits: (event) => {
    const seen = look(event) as Answer & { readonly name?: unknown; readonly id?: unknown }
    if (seen.kind === 'gap') return true
    if (typeof seen.name !== 'string') return false
    if (seen.kind === 'freed') return true
    if (typeof seen.id !== 'string') return false
    return seen.kind === 'contended' || seen.kind === 'revoked' || (seen.kind === 'granted' && isGrant(seen))
  },
}

/** An answer in words, without what may be secret in it. `fits`: what each of a list should have been. */
export function inShort(answer: unknown, fits?: (one: unknown) => boolean): string {
  if (Array.isArray(answer))
    return fits === undefined ? 'an array' : `an array with ${firstMisfit(answer, fits)}`
  if (typeof answer === 'function') return 'a function'
  if (typeof answer === 'string') return inQuotes(answer)
  if (answer === null || typeof answer !== 'object') return String(answer)
  const { kind } = look(answer)
  return typeof kind === 'string' ? `{ kind: ${inQuotes(kind)} … }` : 'an object without a kind'
}

const firstMisfit = (answers: readonly unknown[], fits: (one: unknown) => boolean): string =>
  inShort(answers.find((one) => !fits(one)))

/** A kind is a word. What looks otherwise may be a claim's id, or what a server said. */
export const inQuotes = (text: string): string =>
  /^[a-z][a-z _-]{0,19}$/i.test(text) ? `"${text}"` : 'a text'
