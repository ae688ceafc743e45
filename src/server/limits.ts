import { readFileSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'

import { MAX_MS, MAX_NAME_BYTES } from '../core/arguments.ts'
import type { Capabilities } from '../core/contract.ts'
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
  /** Waiters of one principal; and sessions for which it listens. */
  readonly waitersPerPrincipal: number
  /** Leases of one principal. */
  readonly leasesPerPrincipal: number
  /** Open connections in all. */
  readonly connections: number
  /** Open connections that have no request in service; beyond that, the one silent for longest is closed. */
  readonly idleConnections: number
  /** The same, of one address. */
  readonly idlePerAddress: number
  /** Sessions, event streams and requests that wait, of one principal. */
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
  files: number = openFiles(),
): Limits {
  const unreadInAll = Math.min(DEFAULT_LIMITS.unreadInAll, Math.floor(heap / 4))
  const limits: Record<string, number> = { ...DEFAULT_LIMITS, unreadInAll, ...connectionsWithin(files) }
  for (const [name, value] of Object.entries(wished) as [keyof Limits, number | undefined][]) {
    if (value === undefined) continue
    checkLimit(name, value)
    limits[name] = value
  }
  for (const [less, more] of IN_ORDER) assertInOrder(limits as unknown as Limits, less, more)
  return limits as unknown as Limits
}

/** For files, and for connections to a store. */
const OTHER_FILES = 128

/** Each connection is an open file. Where the system gives few of them, silent ones must not take what the state file needs. */
function connectionsWithin(
  files: number,
): Pick<Limits, 'connections' | 'idleConnections' | 'idlePerAddress'> {
  const connections = Math.min(DEFAULT_LIMITS.connections, Math.max(files - OTHER_FILES, files >> 1, 1))
  const within = (part: number, most: number): number => Math.min(most, Math.ceil(connections / part))
  const { idleConnections, idlePerAddress } = DEFAULT_LIMITS
  return {
    connections,
    idleConnections: within(2, idleConnections),
    idlePerAddress: within(4, idlePerAddress),
  }
}

/** How many files this process may have open. Node has set it as high as it may be. */
function openFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}

/**
 * A lease that is longer than the store stands is one that it may forget, and give to somebody else: a quorum's servers that come
 * back empty look on for its longest lease.
 */
export function limitsWithin(limits: Limits, { maxTtl }: Pick<Capabilities, 'maxTtl'>): Limits {
  return { ...limits, maxTtl: Math.min(limits.maxTtl, maxTtl) }
}

const USUAL_TTL_MS = 15_000

/** For how long a lease is when nobody says it; `before`: as it was, perhaps under other limits. */
export function usualTtl(
  { minTtl, maxTtl }: Pick<Limits, 'minTtl' | 'maxTtl'>,
  before: number = USUAL_TTL_MS,
): number {
  return Math.min(Math.max(before, minTtl), maxTtl)
}

/** One by itself. */
export function checkLimit(name: string, value: unknown): asserts value is number {
  const max = HIGHEST[name as keyof Limits] ?? MAX_MS
  if (name in DEFAULT_LIMITS && Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max) return
  const problem = `limits.${name} must be a known limit and a whole number between 1 and ${max}`
  throw new InvalidArgumentError(problem, { argument: `limits.${name}` })
}

/** Limits that would contradict each other. */
const IN_ORDER: readonly (readonly [keyof Limits, keyof Limits])[] = [
  ['minTtl', 'maxTtl'],
  ['headersTimeout', 'requestTimeout'],
]

function assertInOrder(limits: Limits, less: keyof Limits, more: keyof Limits): void {
  if (limits[less] <= limits[more]) return
  const problem = `limits.${less} (${limits[less]}) must not be larger than limits.${more} (${limits[more]})`
  throw new InvalidArgumentError(`${problem}. Set both.`, { argument: `limits.${less}` })
}
