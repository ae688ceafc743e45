import { getHeapStatistics } from 'node:v8'

import { MAX_MS, MAX_NAME_BYTES } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'

/** How much of the server one client, or all of them, may use. Times are milliseconds. */
export interface Limits {
  /** Bytes of a request's body. */
  readonly body: number
  /** Bytes of a request's headers. */
  readonly headers: number
  /** Bytes of one line of a session. */
  readonly line: number
  /** Bytes of a name, in UTF-8. */
  readonly name: number
  readonly minTtl: number
  readonly maxTtl: number
  /** The longest wait of one request. */
  readonly maxWait: number
  /** Waiters for one name. */
  readonly waitersPerName: number
  /** Waiters of one principal. */
  readonly waitersPerPrincipal: number
  /** Leases of one principal. */
  readonly leasesPerPrincipal: number
  /** Open connections in all. */
  readonly connections: number
  /** Open connections that have no request in service; beyond that, the one silent for longest is closed. */
  readonly idleConnections: number
  /** The same, of one address. */
  readonly idlePerAddress: number
  /** Sessions and event streams of one principal. */
  readonly streamsPerPrincipal: number
  /** Requests of one principal at one address, a second; twice as many at once. */
  readonly requestsPerSecond: number
  /** Operations of one session, a second. */
  readonly operationsPerSecond: number
  /** Until the headers of a request are complete. */
  readonly headersTimeout: number
  /** Until a request is complete. */
  readonly requestTimeout: number
  /** For which a connection may stay without a request. */
  readonly keepAlive: number
  /** For which a client may take next to nothing of its answers. */
  readonly writeTimeout: number
  /** Bytes that one client may leave unread before it is told more. */
  readonly unread: number
  /** The same, of all clients together; without a wish, at most a quarter of what the heap may become. */
  readonly unreadInAll: number
  /** After which a session that says nothing is taken for dead. */
  readonly silence: number
}

export const DEFAULT_LIMITS: Limits = {
  body: 16_384,
  headers: 8192,
  line: 65_536,
  name: MAX_NAME_BYTES,
  minTtl: 100,
  maxTtl: 3_600_000,
  maxWait: 60_000,
  waitersPerName: 10_000,
  waitersPerPrincipal: 20_000,
  leasesPerPrincipal: 200_000,
  connections: 16_000,
  idleConnections: 1000,
  idlePerAddress: 500,
  streamsPerPrincipal: 4000,
  requestsPerSecond: 2000,
  operationsPerSecond: 200_000,
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  keepAlive: 5000,
  writeTimeout: 10_000,
  unread: 4 * 1024 * 1024,
  unreadInAll: 256 * 1024 * 1024,
  silence: 45_000,
}

const HIGHEST: Partial<Limits> = { name: MAX_NAME_BYTES }

/** Those that are to be others than the default ones. */
export type WishedLimits = { readonly [K in keyof Limits]?: Limits[K] | undefined }

export function resolveLimits(
  wished: WishedLimits = {},
  heap: number = getHeapStatistics().heap_size_limit,
): Limits {
  const unreadInAll = Math.min(DEFAULT_LIMITS.unreadInAll, Math.floor(heap / 4))
  const limits: Record<string, number> = { ...DEFAULT_LIMITS, unreadInAll }
  for (const [name, value] of Object.entries(wished) as [keyof Limits, number | undefined][]) {
    if (value === undefined) continue
    const max = HIGHEST[name] ?? MAX_MS
    if (!(name in DEFAULT_LIMITS) || !Number.isInteger(value) || value < 1 || value > max) {
      const problem = `limits.${name} must be a known limit and a whole number between 1 and ${max}`
      throw new InvalidArgumentError(problem, { argument: `limits.${name}` })
    }
    limits[name] = value
  }
  return limits as unknown as Limits
}
