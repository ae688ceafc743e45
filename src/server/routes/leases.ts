import { ALL } from '../../core/contract.ts'
import type { RenewAnswer, RenewRequest } from '../../core/contract.ts'
import type { Caller } from '../caller.ts'
import { Failure, unavailable } from '../failure.ts'
import { asFields, idOf, nameOf, noOthers, ownerOf, required, wholeOf } from '../fields.ts'
import type { Fields } from '../fields.ts'
import { usualTtl } from '../limits.ts'
import type { Limits } from '../limits.ts'
import type { LongPolls, Wish } from '../long-polls.ts'
import { ok } from '../route.ts'
import type { Call, Reply, Route } from '../route.ts'
import type { LockService } from '../service.ts'

const STORE_TIMEOUT_MS = 5000
const RENEWALS = 100

/** Taking, keeping and giving back. */
export function leaseRoutes(service: LockService, polls: LongPolls): readonly Route[] {
  const { limits } = service
  return [
    {
      method: 'POST',
      path: '/v1/acquire',
      access: 'principals',
      handle: (call) => acquire(call, limits, polls),
    },
    { method: 'POST', path: '/v1/renew', access: 'principals', handle: (call) => renew(call, service) },
    {
      method: 'POST',
      path: '/v1/release',
      access: 'principals',
      handle: (call) => release(call, service, polls),
    },
  ]
}

async function acquire(call: Call, limits: Limits, polls: LongPolls): Promise<Reply> {
  const wish = wishOf(asFields(call.body, 'The body'), limits, call)
  const { secret, token, waited } = await polls.acquire(call.caller, wish, (leave) => call.onGone(leave))
  const { name, ttl } = wish
  return {
    status: 200,
    body: { name, lease: secret, token: String(token), ttl, waited },
    // Who made the secret itself may have asked again with it, and been answered.
    ...(wish.lease === undefined && {
      undelivered: () => polls.undo(call.caller, { name, id: secret, ttl }),
    }),
  }
}

const WISH = ['name', 'mode', 'permits', 'of', 'ttl', 'wait', 'owner', 'lease']
/** As hard to guess as one that the server makes. */
const LEASE = /^[\w-]{22,60}\.[\w-]{22,60}$/

function wishOf(fields: Fields, limits: Limits, { caller }: Call): Wish {
  noOthers(fields, WISH)
  const { minTtl, maxTtl, maxWait } = limits
  return {
    name: nameOf(fields['name'], limits),
    ttl: wholeOf(fields, 'ttl', { min: minTtl, max: maxTtl }) ?? usualTtl(limits),
    wait: wholeOf(fields, 'wait', { min: 0, max: maxWait }) ?? 0,
    owner: ownerOf(fields) ?? `${caller.principal.name} at ${caller.remote}`,
    lease: leaseOf(fields['lease']),
    // Last: what is wrong in its form is said before what cannot be.
    ...shareOf(fields),
  }
}

function leaseOf(value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && LEASE.test(value))) return value
  throw new Failure(
    'INVALID_ARGUMENT',
    'lease must be two random words of 22 to 60 letters, digits, - and _, with a dot between them',
  )
}

/** A mode in the words of the store: how much of how much. */
function shareOf(fields: Fields): { weight: number; capacity: number } {
  const { mode = 'exclusive' } = fields
  const permits = wholeOf(fields, 'permits', { min: 1, max: ALL - 1 })
  const of = wholeOf(fields, 'of', { min: 1, max: ALL - 1 })
  if (mode === 'permits') {
    const capacity = required(of, 'of')
    const weight = permits ?? 1
    if (weight <= capacity) return { weight, capacity }
    // No schema can say it, and it is no question of form: the capacity that was named does not allow it.
    throw new Failure('CAPACITY_MISMATCH', 'permits must not be more than there are (of)')
  }
  if (permits !== undefined || of !== undefined) {
    throw new Failure('INVALID_ARGUMENT', 'permits and of belong to the mode "permits"')
  }
  switch (mode) {
    case 'exclusive':
      return { weight: 1, capacity: 1 }
    case 'shared':
      return { weight: 1, capacity: ALL }
    case 'write':
      return { weight: ALL, capacity: ALL }
    default:
      throw new Failure('INVALID_ARGUMENT', 'mode must be exclusive, shared, write or permits')
  }
}

async function renew({ caller, body }: Call, service: LockService): Promise<Reply> {
  const fields = asFields(body, 'The body')
  const { leases } = fields
  if (leases === undefined) {
    const request = renewalOf(fields, service)
    const [answer] = await service.renew(caller, [request], STORE_TIMEOUT_MS)
    const renewed = answer && outcomeOf(request, answer)
    if (renewed?.outcome === 'renewed') return ok(renewed)
    throw renewed?.outcome === 'lost' ? lost() : unavailable()
  }
  noOthers(fields, ['leases'])
  if (!Array.isArray(leases) || leases.length === 0 || leases.length > RENEWALS) {
    throw new Failure('INVALID_ARGUMENT', `leases must be a list of 1 to ${RENEWALS}`)
  }
  const requests = leases.map((one) => renewalOf(asFields(one, 'a lease'), service))
  const answers = await renewAll(caller, requests, service)
  return ok({ leases: requests.map((request, index) => outcomeOf(request, answers[index])) })
}

/** A request is small, but a hundred renewals are not: they wait until there is room for them. */
async function renewAll(
  caller: Caller,
  requests: readonly RenewRequest[],
  service: LockService,
): Promise<readonly RenewAnswer[]> {
  const { load } = service
  if (!load.hasRoom) await new Promise<void>((resolve) => load.wait(resolve))
  load.begin(requests.length)
  try {
    const share = service.shares.of(caller.principal)
    return await share.take(() => service.renew(caller, requests, STORE_TIMEOUT_MS))
  } finally {
    load.end(requests.length)
  }
}

/** Without a ttl: as long as it was taken or renewed for at this server. */
function renewalOf(fields: Fields, { limits, registry }: LockService): RenewRequest {
  noOthers(fields, ['name', 'lease', 'ttl'])
  const { minTtl, maxTtl } = limits
  const wished = wholeOf(fields, 'ttl', { min: minTtl, max: maxTtl })
  const claim = { name: nameOf(fields['name'], limits), id: idOf(fields, 'lease') }
  const ttl = wished ?? usualTtl(limits, registry.ttlOf(claim))
  return { ...claim, ttl, patience: ttl, tokens: 0 }
}

interface Outcome {
  readonly name: string
  readonly outcome: 'renewed' | 'lost' | 'unknown'
  readonly ttl?: number
  /** Somebody waits for it. */
  readonly contended?: boolean
}

function outcomeOf({ name, ttl }: RenewRequest, answer: RenewAnswer | undefined): Outcome {
  switch (answer?.kind) {
    case 'renewed':
    case 'held':
      return { name, outcome: 'renewed', ttl, contended: answer.contended }
    case 'lost':
    case 'queued':
      return { name, outcome: 'lost' }
    default:
      return { name, outcome: 'unknown' }
  }
}

async function release({ caller, body }: Call, service: LockService, polls: LongPolls): Promise<Reply> {
  const fields = asFields(body, 'The body')
  noOthers(fields, ['name', 'lease'])
  const claim = { name: nameOf(fields['name'], service.limits), id: idOf(fields, 'lease') }
  service.assertMay(caller, 'acquire', claim.name)
  polls.givenBack(claim)
  const { released } = await service.release(caller, claim, undefined, STORE_TIMEOUT_MS)
  if (released.kind === 'unknown') throw unavailable()
  if (released.kind === 'not-held') throw lost()
  return ok({ name: claim.name, released: true })
}

function lost(): Failure {
  return new Failure('LOCK_LOST', 'There is no such lease any more. Somebody else may hold the lock.')
}
