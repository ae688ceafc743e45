import { checkName, MAX_MS } from '../core/arguments.ts'
import { ALL } from '../core/contract.ts'
import type { ClaimRef, ClaimRequest, ListQuery, RenewRequest } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { Failure } from './failure.ts'
import type { Limits } from './limits.ts'

/** What strangers send, made into what the code below may trust. */

export type Fields = Readonly<Record<string, unknown>>

const MAX_ID = 128
const MAX_OWNER = 256
const MAX_REASON = 1024
const MAX_TOKENS = 65_536
const MAX_PAGE = 1000
const MAX_CURSOR = 4096
// eslint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

const refuse = (problem: string): Failure => new Failure('INVALID_ARGUMENT', problem)

export function asFields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse(`${what} must be an object`)
  return value as Fields
}

/** A misspelt field would otherwise be left out in silence, and its default taken. */
export function noOthers(fields: Fields, known: readonly string[]): void {
  const stranger = Object.keys(fields).find((field) => !known.includes(field))
  if (stranger !== undefined)
    throw refuse(`${JSON.stringify(stranger.slice(0, 40))} is none of ${known.join(', ')}`)
}

/** The parameters of a query, each at most once: of two, somebody would mean the other one. */
export function onceEach<K extends string>(
  query: URLSearchParams,
  known: readonly K[],
): { readonly [P in K]?: string } {
  const given = Object.fromEntries(query)
  noOthers(given, known)
  const twice = known.find((name) => query.getAll(name).length > 1)
  if (twice !== undefined) throw refuse(`${twice} may stand there once`)
  return given as { readonly [P in K]?: string }
}

export function nameOf(value: unknown, limits: Limits): string {
  try {
    checkName(value)
  } catch (error) {
    throw error instanceof InvalidArgumentError ? refuse(error.message) : error
  }
  if (value.length * 3 > limits.name && Buffer.byteLength(value) > limits.name) {
    throw refuse(`name must be at most ${limits.name} bytes of UTF-8`)
  }
  return value
}

export function textOf(fields: Fields, field: string, { most }: { most: number }): string | undefined {
  const value = fields[field]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value.length === 0 || isLonger(value, most) || CONTROL.test(value)) {
    throw refuse(`${field} must be text of 1 to ${most} characters without control characters`)
  }
  return value
}

/** By characters, as a schema counts them. */
export function isLonger(text: string, most: number): boolean {
  return text.length > most && (text.length > most * 2 || Array.from(text).length > most)
}

export function wholeOf(
  fields: Fields,
  field: string,
  range: { min: number; max: number },
): number | undefined {
  const value = fields[field]
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < range.min || value > range.max) {
    throw refuse(`${field} must be a whole number between ${range.min} and ${range.max}`)
  }
  return value
}

export function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw refuse(`${field} is missing`)
  return value
}

export const ownerOf = (fields: Fields): string | undefined => textOf(fields, 'owner', { most: MAX_OWNER })
export const reasonOf = (fields: Fields): string =>
  required(textOf(fields, 'reason', { most: MAX_REASON }), 'reason')

/** A claim's id, `<session>.<number>`; for users of HTTP it is the lease's secret. */
export function idOf(fields: Fields, field: string): string {
  const id = required(textOf(fields, field, { most: MAX_ID }), field)
  const dot = id.indexOf('.')
  if (dot < 1 || dot === id.length - 1) throw refuse(`${field} is not one that a lock server gives`)
  return id
}

/**
 * Of what is claimed anew: stores put it between other words (a script of Redis, a record), and would take a blank in it for the end of it
 * and what follows for the ttl. What is asked about by such an id is not there. A quorum of lock servers has a ~ before its attempt's number.
 */
const CLAIM_ID = /^[\w-]{1,64}\.[\w~-]+$/

function claimIdOf(fields: Fields): string {
  const id = idOf(fields, 'id')
  if (CLAIM_ID.test(id)) return id
  throw refuse('the id of a claim must be letters, digits, -, _ and ~, with a dot after its session')
}

const MS = { min: 1, max: MAX_MS }
const COUNT = { min: 1, max: ALL }

export function claimRefOf(value: unknown, limits: Limits): ClaimRef {
  const fields = asFields(value, 'a claim')
  return { name: nameOf(fields['name'], limits), id: idOf(fields, 'id') }
}

export function claimRequestOf(value: unknown, limits: Limits): ClaimRequest {
  const fields = asFields(value, 'a claim')
  const { whenBusy } = fields
  if (whenBusy !== 'queue' && whenBusy !== 'try') throw refuse('whenBusy must be queue or try')
  const capacity = required(wholeOf(fields, 'capacity', COUNT), 'capacity')
  // Field by field: with a spread in it, this took ten microseconds instead of a quarter of one.
  return {
    name: nameOf(fields['name'], limits),
    id: claimIdOf(fields),
    weight: required(wholeOf(fields, 'weight', { min: 1, max: capacity }), 'weight'),
    capacity,
    ttl: required(wholeOf(fields, 'ttl', MS), 'ttl'),
    patience: required(wholeOf(fields, 'patience', MS), 'patience'),
    tokens: required(wholeOf(fields, 'tokens', { min: 1, max: MAX_TOKENS }), 'tokens'),
    whenBusy,
    owner: ownerOf(fields) ?? '?',
  }
}

export function renewRequestOf(value: unknown, limits: Limits): RenewRequest {
  const fields = asFields(value, 'a renewal')
  const { minTtl, maxTtl } = limits
  return {
    name: nameOf(fields['name'], limits),
    id: idOf(fields, 'id'),
    ttl: required(wholeOf(fields, 'ttl', { min: minTtl, max: maxTtl }), 'ttl'),
    patience: required(wholeOf(fields, 'patience', MS), 'patience'),
    tokens: required(wholeOf(fields, 'tokens', { min: 0, max: MAX_TOKENS }), 'tokens'),
  }
}

export function listQueryOf(value: unknown): ListQuery {
  const fields = asFields(value, 'a query')
  const prefix = fields['prefix']
  if (prefix !== undefined && (typeof prefix !== 'string' || isLonger(prefix, MAX_CURSOR))) {
    throw refuse('prefix must be text')
  }
  const limit = wholeOf(fields, 'limit', { min: 1, max: MAX_PAGE })
  const cursor = textOf(fields, 'cursor', { most: MAX_CURSOR })
  return {
    ...(prefix === undefined ? {} : { prefix }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  }
}
