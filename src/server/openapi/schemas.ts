import { FAILURES } from '../failure.ts'

/** The shapes that requests and answers are made of. */

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

const name = text('What is locked. Up to 512 bytes of UTF-8, no control characters.', { minLength: 1 })
const lease = text('The secret of the lease. Whoever knows it can renew and release it.')
const token = text(
  'The fencing token: larger than those of all former grants of the name. Digits, as text.',
  {
    pattern: '^[0-9]+$',
  },
)
const ttl = whole('Milliseconds for which the lease lasts unless it is renewed.', { minimum: 1 })
const owner = text('Who holds or waits, in words for people.')

const claim = {
  owner,
  weight: whole('How much of the capacity it takes.'),
  expiresIn: whole('Milliseconds until it is forgotten unless it is renewed.'),
}

export const schemas: Readonly<Record<string, Schema>> = {
  Acquire: object(
    {
      name,
      mode: text('What kind of lock. "shared" and "write" are the two sides of a read-write lock.', {
        enum: ['exclusive', 'shared', 'write', 'permits'],
        default: 'exclusive',
      }),
      permits: whole('With mode "permits": how many.', { minimum: 1, default: 1 }),
      of: whole('With mode "permits": of how many. The same in every request for the name.', { minimum: 1 }),
      ttl: { ...ttl, default: 15_000 },
      wait: whole('Milliseconds to wait in line. 0: one attempt.', { minimum: 0, default: 0 }),
      owner,
      lease: text(
        'The secret, if you make it yourself, from a random source: then you can release what you may have been granted and did not hear of.',
        { pattern: '^[A-Za-z0-9_-]{22,60}[.][A-Za-z0-9_-]{22,60}$' },
      ),
    },
    ['name'],
  ),
  Lease: object({ name, lease, token, ttl, waited: whole('Milliseconds in line.') }),
  LeaseRef: object({ name, lease }),
  Renewal: object({ name, lease, ttl: { ...ttl, default: 15_000 } }, ['name', 'lease']),
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
  Names: object({ names: list(name), cursor: text('Where the next page begins; missing on the last one.') }, [
    'names',
  ]),
  Lock: object({
    name,
    capacity: whole('0 when the name is not in use.'),
    holders: list(object({ ...claim, token })),
    waiters: list(object(claim)),
  }),
  ForceRelease: object(
    {
      name,
      reason: text('Why. Goes into the audit log.', { minLength: 1, maxLength: 1024 }),
      token: { ...token, description: 'Only the lease with this token.' },
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
