import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { hasCode, ZooKeeperError } from './client/index.ts'
import type { ZooKeeperErrorCode } from './client/index.ts'

/** Asking again cannot help. */
const FINAL: ReadonlySet<ZooKeeperErrorCode> = new Set([
  'AUTH_FAILED',
  'BAD_ARGUMENTS',
  'CLOSED',
  // Servers with local sessions that may not be made global ones.
  'EPHEMERAL_ON_LOCAL_SESSION',
  'INVALID_ACL',
  'NO_AUTH',
  'SESSION_CLOSED_REQUIRE_AUTH',
  'UNIMPLEMENTED',
] as const)

/** What to do about it, where the server's word for it does not say. */
const ADVICE: Partial<Record<ZooKeeperErrorCode, string>> = {
  INVALID_ACL: 'acl=creator is for clients with credentials: user:password@ in the URL, or auth',
  NO_AUTH: 'give the credentials of whoever made the directory, or take another root',
  SESSION_CLOSED_REQUIRE_AUTH:
    'the servers serve nobody without credentials: user:password@ in the URL, or auth. There is no SASL',
}

export function failed(cause: unknown): Unknown {
  const final = cause instanceof ZooKeeperError && FINAL.has(cause.code)
  return final ? unknownForGood(advised(cause)) : unknown(cause)
}

function advised(error: ZooKeeperError): ZooKeeperError {
  const advice = ADVICE[error.code]
  if (advice === undefined) return error
  const { code, message, path } = error
  return new ZooKeeperError(code, `${message}; ${advice}`, {
    cause: error,
    ...(path !== undefined && { path }),
  })
}

/** The claim of a request that is under way was removed meanwhile: by its owner, who has gone, or by somebody else. Then it can be made anew. */
export function givenUp(): ZooKeeperError {
  return new ZooKeeperError('NO_NODE', 'The claim was given up')
}

/** Whether a failed request could have been carried out all the same. */
export function mayHaveHappened(error: unknown): boolean {
  return ['CONNECTION_LOSS', 'OPERATION_TIMEOUT', 'REQUEST_TIMEOUT', 'SESSION_MOVED', 'CLOSED'].some((code) =>
    hasCode(error, code as 'CONNECTION_LOSS'),
  )
}

export const LATE: Unknown = failed(
  new ZooKeeperError('OPERATION_TIMEOUT', 'ZooKeeper did not answer in time'),
)
