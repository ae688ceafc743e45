import type { FailureCode } from '../failure.ts'
import { FAILURES } from '../failure.ts'
import type { Limits } from '../limits.ts'
import { nameSchema, ref } from './schemas.ts'

/** The routes. Every example is sent to a real server by a test, in this order, and answered as it says. */

type Json = Readonly<Record<string, unknown>>

interface Operation {
  readonly summary: string
  readonly description?: string
  readonly body?: readonly [schema: string | Json, example: Json]
  readonly parameters?: readonly Json[]
  readonly answer: readonly [description: string, content: Json]
  readonly failures: readonly FailureCode[]
  readonly open?: true
}

const json = (schema: Json, example: unknown): Json => ({ 'application/json': { schema, example } })

/** Any request may be turned away for these. */
const ALWAYS: readonly FailureCode[] = [
  'WRONG_HOST',
  'WRONG_ORIGIN',
  'EXPECTATION_FAILED',
  'RATE_LIMITED',
  'INTERNAL',
]
const KNOWN: readonly FailureCode[] = ['UNAUTHENTICATED', 'FORBIDDEN']
const WRITES: readonly FailureCode[] = [
  'INVALID_ARGUMENT',
  'HEADER_MISSING',
  'TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
]
const CLAIMS: readonly FailureCode[] = [
  'TOO_MANY',
  'STARTING',
  'STOPPING',
  'STORE_UNAVAILABLE',
  'AUDIT_UNAVAILABLE',
]

function responses({ answer: [description, content], failures, open }: Operation): Json {
  const codes = [...failures, ...(open === true ? [] : KNOWN), ...ALWAYS]
  const byStatus = new Map<number, string[]>()
  for (const code of codes) byStatus.set(FAILURES[code], [...(byStatus.get(FAILURES[code]) ?? []), code])
  const refused = [...byStatus].sort(([a], [b]) => a - b)
  return {
    '200': { description, content },
    ...Object.fromEntries(
      refused.map(([status, names]) => [
        String(status),
        { description: names.join(', '), content: { 'application/json': { schema: ref('Failure') } } },
      ]),
    ),
  }
}

function operation(one: Operation): Json {
  const { summary, description, body, parameters, open } = one
  const header = { $ref: '#/components/parameters/HoldfastRequest' }
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    ...(open === true ? { security: [] } : {}),
    ...(body === undefined && parameters === undefined
      ? {}
      : { parameters: [...(body === undefined ? [] : [header]), ...(parameters ?? [])] }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: json(typeof body[0] === 'string' ? ref(body[0]) : body[0], body[1]),
          },
        }),
    responses: responses(one),
  }
}

const query = (name: string, description: string, schema: Json): Json => ({
  name,
  in: 'query',
  description,
  schema,
})
const textParameter = { type: 'string' }
/** In an address a character may take twelve: all parameters together have to fit into the headers. */
const prefixOf = ({ name }: Limits): Json => ({
  type: 'string',
  anyOf: [{ maxLength: Math.floor(name / 4) }, { pattern: '^[ -~]*$', maxLength: name }],
})
const CURSOR = { type: 'string', pattern: '^[A-Za-z0-9_-]+$', maxLength: 4000 }

export const pathsOf = (limits: Limits): Readonly<Record<string, Json>> => ({
  '/v1/acquire': {
    post: operation({
      summary: 'Take a lock, or wait for it.',
      description:
        'Waits in line for up to `wait` milliseconds; who closes the connection leaves the line. The lease lasts `ttl` from the ' +
        'moment the server granted it: after a wait, renew it and count from the sending of that request.',
      body: ['Acquire', { name: 'train:G101', ttl: 30_000, wait: 5000, owner: 'seller 7' }],
      answer: [
        'Granted.',
        json(ref('Lease'), {
          name: 'train:G101',
          lease: '3mS4p0AyzXcN2v8w1kR7Qg.hT0b6eUu9fJm2LrYw5sKxA',
          token: '1763241600000000',
          ttl: 30_000,
          waited: 0,
        }),
      ],
      failures: [
        ...WRITES,
        'LOCK_BUSY',
        'LOCK_TIMEOUT',
        'CAPACITY_MISMATCH',
        'ID_IN_USE',
        'UNSUPPORTED',
        ...CLAIMS,
      ],
    }),
  },
  '/v1/renew': {
    post: operation({
      summary: 'Keep one lease, or up to a hundred.',
      body: [
        { oneOf: [ref('Renewal'), ref('Renewals')] },
        { leases: [{ name: 'train:G101', lease: '{lease}', ttl: 30_000 }] },
      ],
      answer: [
        'For one lease its outcome, for a list a list in the same order.',
        json(
          { oneOf: [ref('Renewed'), ref('RenewedMany')] },
          { leases: [{ name: 'train:G101', outcome: 'renewed', ttl: 30_000, contended: false }] },
        ),
      ],
      failures: [...WRITES, 'LOCK_LOST', 'STORE_UNAVAILABLE'],
    }),
  },
  '/v1/locks': {
    get: operation({
      summary: 'The names that are held or waited for.',
      parameters: [
        query('prefix', 'Only names that begin with this.', prefixOf(limits)),
        query('limit', 'At most this many.', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }),
        query('cursor', 'From the page before.', CURSOR),
      ],
      answer: [
        'A page. It may have fewer than `limit` names although more follow.',
        json(ref('Names'), { names: ['job', 'train:G101'] }),
      ],
      failures: ['INVALID_ARGUMENT', 'NOT_FOUND', 'STORE_UNAVAILABLE'],
    }),
  },
  '/v1/locks/{name}': {
    get: operation({
      summary: 'Who holds a name and who waits for it, first come first.',
      parameters: [
        {
          name: 'name',
          in: 'path',
          required: true,
          description: 'Percent-encoded; slashes may stay as they are.',
          schema: nameSchema(limits),
          example: 'train:G101',
        },
      ],
      answer: [
        'Secrets are not shown.',
        json(ref('Lock'), {
          name: 'train:G101',
          capacity: 1,
          holders: [{ owner: 'seller 7', weight: 1, expiresIn: 29_950, token: '1763241600000000' }],
          waiters: [],
        }),
      ],
      failures: ['INVALID_ARGUMENT', 'STORE_UNAVAILABLE'],
    }),
  },
  '/v1/release': {
    post: operation({
      summary: 'Give a lock back.',
      body: ['LeaseRef', { name: 'train:G101', lease: '{lease}' }],
      answer: ['Released.', json(ref('Released'), { name: 'train:G101', released: true })],
      failures: [...WRITES, 'LOCK_LOST', 'STORE_UNAVAILABLE'],
    }),
  },
  '/v1/force-release': {
    post: operation({
      summary: 'Take a lock away from its holder.',
      description:
        'The next grant has a larger token, so a resource that checks tokens refuses what the victim still does.',
      body: ['ForceRelease', { name: 'job', reason: 'worker 3 hangs' }],
      answer: [
        'Who held it.',
        json(ref('Revoked'), { name: 'job', revoked: [{ owner: 'worker 3', token: '1763241600000000' }] }),
      ],
      failures: [...WRITES, 'NOT_HELD', 'STORE_UNAVAILABLE', 'AUDIT_UNAVAILABLE'],
    }),
  },
  '/v1/events': {
    get: operation({
      summary: 'What happens to locks at this server, as server-sent events.',
      description:
        'Events: queued, held, released, lost, revoked. Their data is JSON with name, owner and, for all but queued, token.',
      parameters: [query('prefix', 'Only names that begin with this.', prefixOf(limits))],
      answer: ['Until either side ends it.', { 'text/event-stream': { schema: textParameter } }],
      failures: ['INVALID_ARGUMENT', 'TOO_MANY', 'STOPPING'],
    }),
  },
  '/v1/operations': {
    post: operation({
      summary: 'The operations of a session, without a connection of its own.',
      description:
        'For stores that have nothing but `fetch`. What is refused is an answer of the kind "unknown", with its `code`. "list" and "inspect" are ' +
        'operations, too, each in a request of its own.',
      body: ['Operations', { operations: [{ operation: 'ping' }] }],
      answer: ['An answer for each.', json(ref('Answers'), { answers: [{ kind: 'done' }] })],
      failures: [...WRITES],
    }),
  },
  '/v1/keep': {
    post: operation({
      summary: 'Operations that only keep, or give back, what there is.',
      description:
        'Like `/v1/operations`, for "renew", "release" (without `next`) and "withdraw". They have as many requests a second for themselves.',
      body: ['Keeping', { operations: [{ operation: 'withdraw', payload: { name: 'a', id: 's.0' } }] }],
      answer: ['An answer for each.', json(ref('Answers'), { answers: [{ kind: 'not-held' }] })],
      failures: [...WRITES],
    }),
  },
  '/v1/watch': {
    post: operation({
      summary: 'What a session is told: the next events, or none after `wait` milliseconds.',
      description:
        'The server listens for a session from the first such request on, and for 15 seconds after each.',
      body: ['Watch', { session: '3mS4p0AyzXcN2v8w1kR7Qg', after: 0, wait: 0 }],
      answer: ['The events since `after`.', json(ref('Delivery'), { fresh: true, last: 0, events: [] })],
      failures: [...WRITES, 'ID_IN_USE', ...CLAIMS],
    }),
  },
  '/v1/health': {
    get: operation({
      summary: 'Whether the server runs.',
      answer: [
        'It does; also while it cannot grant anything.',
        json(ref('Status'), { status: 'ready', store: 'memory' }),
      ],
      failures: [],
      open: true,
    }),
  },
  '/v1/ready': {
    get: operation({
      summary: 'Whether the server grants locks.',
      answer: ['It does.', json(ref('Status'), { status: 'ready', store: 'memory' })],
      failures: ['STARTING', 'STOPPING', 'STORE_UNAVAILABLE', 'AUDIT_UNAVAILABLE'],
      open: true,
    }),
  },
  '/v1/metrics': {
    get: operation({
      summary: 'Numbers for Prometheus. Needs the right to read every name.',
      answer: ['Text format 0.0.4.', { 'text/plain': { schema: textParameter } }],
      failures: [],
    }),
  },
  '/v1/openapi.json': {
    get: operation({
      summary: 'This description.',
      answer: ['OpenAPI 3.1.', { 'application/json': { schema: { type: 'object' } } }],
      failures: [],
      open: true,
    }),
  },
})
