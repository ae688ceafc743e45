import { isUtf8 } from 'node:buffer'

import type { ClaimInfo } from '../../core/contract.ts'
import { Failure, unavailable } from '../failure.ts'
import {
  asFields,
  isLonger,
  listQueryOf,
  nameOf,
  noOthers,
  onceEach,
  reasonOf,
  required,
  textOf,
} from '../fields.ts'
import { ok } from '../route.ts'
import type { Call, Reply, Route } from '../route.ts'
import type { LockService } from '../service.ts'

const STORE_TIMEOUT_MS = 5000
const DIGITS = /^\d{1,30}$/
const CURSOR = /^[\w-]{1,4000}$/

/** Looking, and breaking open. */
export function lockRoutes(service: LockService): readonly Route[] {
  return [
    { method: 'GET', path: '/v1/locks', access: 'principals', handle: (call) => list(call, service) },
    {
      method: 'GET',
      path: '/v1/locks/{name}',
      access: 'principals',
      handle: (call) => inspect(call, service),
    },
    {
      method: 'POST',
      path: '/v1/force-release',
      access: 'principals',
      handle: (call) => force(call, service),
    },
  ]
}

async function list({ caller, query }: Call, service: LockService): Promise<Reply> {
  const { prefix = '', limit, cursor } = onceEach(query, ['prefix', 'limit', 'cursor'])
  if (isLonger(prefix, service.limits.name)) throw invalid('prefix must not be longer than a name')
  if (limit !== undefined && !/^\d{1,9}$/.test(limit)) throw invalid('limit must be a whole number')
  if (cursor !== undefined && !CURSOR.test(cursor)) throw invalid('cursor must be one that this server gave')
  const wish = listQueryOf({
    prefix,
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(cursor === undefined ? {} : { cursor: storesCursor(cursor) }),
  })
  const page = await service.list(caller, wish, STORE_TIMEOUT_MS)
  if ('kind' in page) throw unavailable()
  const { names, cursor: next } = page
  return ok(next === undefined ? { names } : { names, cursor: Buffer.from(next).toString('base64url') })
}

/** A store's cursor may be a name: in an address it is letters, digits, - and _. */
function storesCursor(cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const text = bytes.toString('utf8')
  if (text !== '' && isUtf8(bytes) && !/[\p{Cc}\u2028\u2029]/u.test(text)) return text
  throw new Failure('NOT_FOUND', 'There is no such page: cursor must be one that this server gave.')
}

const invalid = (problem: string): Failure => new Failure('INVALID_ARGUMENT', problem)

async function inspect({ caller, rest }: Call, service: LockService): Promise<Reply> {
  const name = nameOf(rest, service.limits)
  const info = await service.inspect(caller, name, STORE_TIMEOUT_MS)
  if ('kind' in info) throw unavailable()
  const { capacity, holders, waiters } = info
  return ok({ name, capacity, holders: holders.map(shown), waiters: waiters.map(shown) })
}

/** A claim without its id: whoever knows that can release it. */
function shown({ owner, weight, token, expiresIn }: ClaimInfo): Record<string, unknown> {
  const claim = { owner, weight, expiresIn: Math.round(expiresIn) }
  return token === undefined ? claim : { ...claim, token: String(token) }
}

async function force({ caller, body }: Call, service: LockService): Promise<Reply> {
  const fields = asFields(body, 'The body')
  noOthers(fields, ['name', 'reason', 'token'])
  const name = nameOf(required(fields['name'], 'name'), service.limits)
  const reason = reasonOf(fields)
  const token = textOf(fields, 'token', { most: 30 })
  if (token !== undefined && !DIGITS.test(token))
    throw new Failure('INVALID_ARGUMENT', 'token must be digits, as text')
  const wish = { name, reason, token: token === undefined ? undefined : BigInt(token) }
  const revoked = await service.forceRelease(caller, wish, STORE_TIMEOUT_MS)
  if (revoked.length === 0) throw new Failure('NOT_HELD', 'Nobody holds that.')
  return ok({ name, revoked: revoked.map(({ owner, token: held }) => ({ owner, token: String(held) })) })
}
