import { ALL } from '../../core/contract.ts'
import { FAILURES } from '../failure.ts'
import { usualTtl } from '../limits.ts'
import type { Limits } from '../limits.ts'
import {
  LONGEST_QUESTION,
  LONGEST_TIMEOUT,
  OPERATIONS_OVER_HTTP,
  OPERATIONS_PER_REQUEST,
  OPERATIONS_TO_KEEP,
} from '../../stores/holdfast/wire.ts'

/** The shapes that requests and answers are made of: what a request's schema allows, the server takes. */

type Schema = Readonly<Record<string, unknown>>

const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
const whole = (description: string, more: Schema = {}): Schema => ({ type: 'integer', description, ...more })
const object = (
  properties: Record<string, Schema>,
  required: readonly string[] = Object.keys(properties),
): Schema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const list = (items: Schema, more: Schema = {}): Schema => ({ type: 'array', items, ...more })
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

const NO_CONTROL = '^[^\\u0000-\\u001f\\u007f-\\u009f]+$'
const NO_BREAK = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$'

const name = text('What is locked.', { minLength: 1 })

/** A schema counts characters and the server bytes: this is all that is certain to fit, and all that people use. */
export function nameSchema({ name: bytes }: Limits): Schema {
  return {
    type: 'string',
    description: `What is locked. Up to ${bytes} bytes of UTF-8, no control characters.`,
    minLength: 1,
    anyOf: [
      { pattern: NO_CONTROL, maxLength: Math.floor(bytes / 4) },
      { pattern: '^[ -~]+$', maxLength: bytes },
    ],
  }
}

const LEASE = 'The secret of the lease. Whoever knows it can renew and release it.'
const lease = text(LEASE)
const leaseGiven = text(LEASE, { pattern: '^[ -\\-/-~]+[.][ -~]+$', maxLength: 128 })
const token = text(
  'The fencing token: larger than those of all former grants of the name. Digits, as text.',
  {
    pattern: '^[0-9]+$',
  },
)
const LASTS = 'Milliseconds for which the lease lasts unless it is renewed.'
const ttl = whole(LASTS, { minimum: 1 })
const owner = text('Who holds or waits, in words for people.')
const ownerGiven = { ...owner, pattern: NO_BREAK, maxLength: 256 }

const claim = {
  owner,
  weight: whole('How much of the capacity it takes.'),
  expiresIn: whole('Milliseconds until it is forgotten unless it is renewed.'),
}

const PAYLOADS = [
  { type: 'object', properties: {} },
  { type: 'array', items: { type: 'object', properties: {} } },
  { type: 'string' },
]
const SPOKEN = [{ type: 'object' }, { type: 'array', items: { type: 'object' } }]

const LOOKS = ['inspect', 'list']

const operationOf = (names: readonly string[]): Schema =>
  object(
    {
      operation: text('What is asked, as in a session. "hello" says what the server can do.', {
        enum: names,
      }),
      payload: { description: 'As in a session.', anyOf: PAYLOADS },
      timeout: whole('Milliseconds for which an answer is of use.', {
        minimum: 1,
        maximum: LONGEST_TIMEOUT,
        default: LONGEST_TIMEOUT,
      }),
    },
    ['operation'],
  )

export function schemasOf(limits: Limits): Readonly<Record<string, Schema>> {
  const { minTtl, maxTtl, maxWait } = limits
  const wished = nameSchema(limits)
  const lasting = { ...ttl, minimum: minTtl, maximum: maxTtl, default: usualTtl(limits) }
  const renewedFor = {
    ...ttl,
    description: `${LASTS} Without it: as long as it was last taken or renewed for at this server, else ${lasting.default}.`,
    minimum: minTtl,
    maximum: maxTtl,
  }
  const every = {
    name: wished,
    ttl: lasting,
    wait: whole('Milliseconds to wait in line. 0: one attempt.', {
      minimum: 0,
      maximum: maxWait,
      default: 0,
    }),
    owner: ownerGiven,
    lease: text(
      'The secret, if you make it yourself, from a random source: then you can release what you may have been granted and did not hear of.',
      { pattern: '^[A-Za-z0-9_-]{22,60}[.][A-Za-z0-9_-]{22,60}$' },
    ),
  }
  return {
    Acquire: { oneOf: [ref('AcquireLock'), ref('AcquirePermits')] },
    AcquireLock: object(
      {
        ...every,
        mode: text('What kind of lock. "shared" and "write" are the two sides of a read-write lock.', {
          enum: ['exclusive', 'shared', 'write'],
          default: 'exclusive',
        }),
      },
      ['name'],
    ),
    AcquirePermits: object(
      {
        ...every,
        mode: text('A semaphore.', { const: 'permits' }),
        permits: whole('How many; not more than `of`.', { minimum: 1, maximum: ALL - 1, default: 1 }),
        of: whole('Of how many. The same in every request for the name.', { minimum: 1, maximum: ALL - 1 }),
      },
      ['name', 'mode', 'of'],
    ),
    Lease: object({ name, lease, token, ttl, waited: whole('Milliseconds in line.') }),
    LeaseRef: object({ name: wished, lease: leaseGiven }),
    Renewal: object({ name: wished, lease: leaseGiven, ttl: renewedFor }, ['name', 'lease']),
    Renewals: object({ leases: list(ref('Renewal'), { minItems: 1, maxItems: 100 }) }),
    Renewed: object(
      {
        name,
        outcome: text('"unknown": ask again; believe no longer than before.', {
          enum: ['renewed', 'lost', 'unknown'],
        }),
        ttl,
        contended: { type: 'boolean', description: 'Somebody waits for it.' },
      },
      ['name', 'outcome'],
    ),
    RenewedMany: object({ leases: list(ref('Renewed')) }),
    Released: object({ name, released: { type: 'boolean', const: true } }),
    Names: object(
      { names: list(name), cursor: text('Where the next page begins; missing on the last one.') },
      ['names'],
    ),
    Lock: object({
      name,
      capacity: whole('0 when the name is not in use.'),
      holders: list(object({ ...claim, token })),
      waiters: list(object(claim)),
    }),
    Operations: { oneOf: [ref('OperationList'), ref('Look')] },
    OperationList: object({
      operations: list(operationOf(OPERATIONS_OVER_HTTP.filter((one) => !LOOKS.includes(one))), {
        minItems: 1,
        maxItems: OPERATIONS_PER_REQUEST,
      }),
    }),
    // Their answers may be long.
    Look: object({ operations: list(operationOf(LOOKS), { minItems: 1, maxItems: 1 }) }),
    Keeping: object({
      operations: list(operationOf(OPERATIONS_TO_KEEP), { minItems: 1, maxItems: OPERATIONS_PER_REQUEST }),
    }),
    Answers: object({
      answers: list({ description: 'As in a session, in the same order.', anyOf: SPOKEN }),
    }),
    Watch: object(
      {
        session: text('Whose events. The first half of the ids of its claims.', {
          pattern: '^[A-Za-z0-9_-]{1,64}$',
        }),
        after: whole('The last event that has come; those up to it are forgotten.', {
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
        wait: whole(
          `Milliseconds to wait for an event. This server waits for ${maxWait} of them at the most.`,
          {
            minimum: 0,
            maximum: LONGEST_QUESTION,
            default: 0,
          },
        ),
        end: { type: 'boolean', description: 'Nobody listens any more.', default: false },
      },
      ['session'],
    ),
    Delivery: object({
      fresh: {
        type: 'boolean',
        description: 'It is listened for since now: what happened before is not known.',
      },
      last: whole('The number of the last event.'),
      events: list({ type: 'object' }),
    }),
    ForceRelease: object(
      {
        name: wished,
        reason: text('Why. Goes into the audit log.', { pattern: NO_BREAK, maxLength: 1024 }),
        token: { ...token, description: 'Only the lease with this token.', maxLength: 30 },
      },
      ['name', 'reason'],
    ),
    Revoked: object({ name, revoked: list(object({ owner, token })) }),
    Status: object({
      status: text('How it is.', { enum: ['starting', 'ready', 'stopping'] }),
      store: text('The kind of store.'),
    }),
    Failure: object({
      error: {
        type: 'object',
        properties: {
          code: text('For programs.', { enum: Object.keys(FAILURES) }),
          message: text('For people.'),
        },
        required: ['code', 'message'],
      },
    }),
  }
}
