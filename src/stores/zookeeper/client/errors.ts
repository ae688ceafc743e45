/**
 * What a ZooKeeper server, or the way to it, can answer instead of a result. `code` is stable.
 * Messages carry the operation and the path, never data or passwords.
 */

const CODES = {
  SYSTEM_ERROR: -1,
  RUNTIME_INCONSISTENCY: -2,
  DATA_INCONSISTENCY: -3,
  CONNECTION_LOSS: -4,
  MARSHALLING_ERROR: -5,
  UNIMPLEMENTED: -6,
  OPERATION_TIMEOUT: -7,
  BAD_ARGUMENTS: -8,
  API_ERROR: -100,
  NO_NODE: -101,
  NO_AUTH: -102,
  BAD_VERSION: -103,
  NO_CHILDREN_FOR_EPHEMERALS: -108,
  NODE_EXISTS: -110,
  NOT_EMPTY: -111,
  SESSION_EXPIRED: -112,
  INVALID_CALLBACK: -113,
  INVALID_ACL: -114,
  AUTH_FAILED: -115,
  SESSION_MOVED: -118,
  NOT_READ_ONLY: -119,
  EPHEMERAL_ON_LOCAL_SESSION: -120,
  NO_WATCHER: -121,
  REQUEST_TIMEOUT: -122,
  RECONFIG_DISABLED: -123,
  SESSION_CLOSED_REQUIRE_AUTH: -124,
  QUOTA_EXCEEDED: -125,
  THROTTLED: -127,
} as const

/** `CLOSED`: the client was closed by its user. `PROTOCOL`: the other side does not speak ZooKeeper. */
export type ZooKeeperErrorCode = keyof typeof CODES | 'CLOSED' | 'PROTOCOL' | 'UNKNOWN'

const BY_NUMBER = new Map<number, ZooKeeperErrorCode>(
  Object.entries(CODES).map(([code, number]) => [number, code as ZooKeeperErrorCode]),
)

export class ZooKeeperError extends Error {
  override readonly name: string = 'ZooKeeperError'
  readonly code: ZooKeeperErrorCode
  /** The path that was asked about, as the servers know it: with the chroot. */
  readonly path?: string

  constructor(
    code: ZooKeeperErrorCode,
    message: string,
    { path, cause }: { path?: string; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    if (path !== undefined) this.path = path
  }
}

function codeOf(number: number): ZooKeeperErrorCode {
  return BY_NUMBER.get(number) ?? 'UNKNOWN'
}

/** The server's refusal of one request. */
export function refusal(number: number, operation: string, path: string | undefined): ZooKeeperError {
  const code = codeOf(number)
  const shown = code === 'UNKNOWN' ? `error ${number}` : code
  return new ZooKeeperError(
    code,
    `${operation}${path === undefined ? '' : ` ${path}`}: ${shown}`,
    path === undefined ? {} : { path },
  )
}

export function hasCode(error: unknown, code: ZooKeeperErrorCode): boolean {
  return error instanceof ZooKeeperError && error.code === code
}

/** Why a request has no answer. It may or may not have happened. */
export function failedRequest(
  { name, path }: { readonly name: string; readonly path?: string },
  cause: ZooKeeperError,
): ZooKeeperError {
  const code = cause.code === 'PROTOCOL' ? 'CONNECTION_LOSS' : cause.code
  const what = path === undefined ? name : `${name} ${path}`
  return new ZooKeeperError(code, `${what}: ${code}`, path === undefined ? { cause } : { path, cause })
}
