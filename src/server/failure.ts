/** Everything that the server may answer instead of what was asked. docs/server.md lists the same ones. */
export const FAILURES = {
  INVALID_ARGUMENT: 400,
  HEADER_MISSING: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  WRONG_ORIGIN: 403,
  NOT_FOUND: 404,
  NOT_HELD: 404,
  METHOD_NOT_ALLOWED: 405,
  LOCK_BUSY: 409,
  LOCK_TIMEOUT: 409,
  LOCK_LOST: 409,
  CAPACITY_MISMATCH: 409,
  ID_IN_USE: 409,
  TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  EXPECTATION_FAILED: 417,
  WRONG_HOST: 421,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  TOO_MANY: 429,
  INTERNAL: 500,
  UNSUPPORTED: 501,
  STORE_UNAVAILABLE: 503,
  AUDIT_UNAVAILABLE: 503,
  STARTING: 503,
  STOPPING: 503,
} as const

export type FailureCode = keyof typeof FAILURES

/** Refusals that say something about who asked. Those about the question itself are between the two of them. */
export const REFUSALS: ReadonlySet<FailureCode> = new Set<FailureCode>([
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'WRONG_HOST',
  'WRONG_ORIGIN',
  'TOO_MANY',
  'RATE_LIMITED',
  'AUDIT_UNAVAILABLE',
])

export interface FailureDetails {
  /** Seconds, for `Retry-After`. */
  readonly retryAfter?: number
  /** More fields of the error, for programs. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** A refusal, as a value: the two doors of the server say it in their own ways. Its message is meant for strangers. */
export class Failure extends Error {
  readonly code: FailureCode
  readonly retryAfter: number | undefined
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: FailureCode, message: string, { retryAfter, fields = {} }: FailureDetails = {}) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.retryAfter = retryAfter
    this.fields = fields
  }

  get status(): number {
    return FAILURES[this.code]
  }
}

export function unavailable(): Failure {
  return new Failure('STORE_UNAVAILABLE', 'The store behind the lock server did not answer.', {
    retryAfter: 1,
  })
}

export function unrecordable(): Failure {
  return new Failure('AUDIT_UNAVAILABLE', 'The audit log cannot be written, so nothing is granted.', {
    retryAfter: 5,
  })
}

export function tooMany(what: string, retryAfter = 1): Failure {
  return new Failure('TOO_MANY', `There are too many ${what} already.`, { retryAfter })
}

/** What a front is shown of holders at another lock server cannot be used to take a lock away. */
export function behindAnother(): Failure {
  const message =
    'The lock server behind this one shows holders only to an admin. Ask there, or give this one such a token.'
  return new Failure('UNSUPPORTED', message)
}

export const busy = (): Failure => new Failure('LOCK_BUSY', 'Somebody else has it.')

export function timedOut(ms: number): Failure {
  const waited = Math.round(ms)
  return new Failure('LOCK_TIMEOUT', `It did not become free within ${waited} ms.`, { fields: { waited } })
}
