import type {
  Capabilities,
  ClaimAnswer,
  ClaimInfo,
  DowngradeAnswer,
  ListPage,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  StoreEvent,
  Unknown,
} from '../../core/contract.ts'

/**
 * What a lock server and its clients say to each other after the HTTP upgrade: lines of JSON, both ways, on one
 * connection. One HTTP request per operation was measured too: it takes five times the processor time one after the
 * other and thirty times with 64 names at once, and events would need a second connection, whose messages overtake the
 * answers of the first.
 *
 * - client: `[number, operation, payload, timeout]`
 * - server: `[number, answer]`, in any order, and `[0, event]` for what nobody asked for; the first is a `hello`.
 *
 * Tokens are text, for they may be larger than a double holds exactly.
 */

/** The value of the `Upgrade` header, with the version of everything in this file. */
export const PROTOCOL = 'holdfast.1'
export const SESSION_PATH = '/v1/session'
/** On every request that changes something: a web page cannot send it to a stranger without being asked first. */
export const WRITE_HEADER = 'holdfast-request'
export const DEFAULT_PORT = 7420
/** Renewals that go into one line; a longer list is sent as several. */
export const RENEWALS_PER_LINE = 100
/** And what they may take of it: a line has at most 64 kB, with its number and the rest. */
export const RENEWAL_BYTES: number = 63 * 1024

/** Of those who speak HTTP alone: where operations go. */
export const OPERATIONS_PATH = '/v1/operations'
/** And those of them that only keep or give back what there is: claims beyond a limit must cost nobody a lease. */
export const KEEP_PATH = '/v1/keep'
export const OPERATIONS_TO_KEEP: readonly string[] = ['renew', 'release', 'withdraw']
/** Of one request. */
export const OPERATIONS_PER_REQUEST = 64
export const OPERATIONS_OVER_HTTP: readonly string[] = [
  'hello',
  'claim',
  'renew',
  'release',
  'withdraw',
  'downgrade',
  'inspect',
  'list',
  'ping',
]

/** For which an answer may be of use, in milliseconds. */
export const LONGEST_TIMEOUT = 30_000
/** For which a question may ask to wait for events. A server whose requests may not wait for so long answers earlier. */
export const LONGEST_QUESTION = 60_000

export type Operation =
  | 'claim'
  | 'renew'
  | 'release'
  | 'withdraw'
  | 'downgrade'
  | 'watch'
  | 'unwatch'
  | 'inspect'
  | 'list'
  | 'ping'
  /** Over HTTP only: a session begins with the answer. */
  | 'hello'

/** The server's first words: what stands behind it. */
export interface Hello {
  readonly kind: 'hello'
  readonly store: string
  readonly capabilities: Capabilities
  /** It can turn a write lock into a read lock. */
  readonly downgrade?: boolean
}

interface WireToken {
  readonly token: string
}

type AnyAnswer = ClaimAnswer | RenewAnswer | ReleaseAnswer | DowngradeAnswer

/** Unknown, as it travels: the cause in words. */
interface WireUnknown {
  readonly kind: 'unknown'
  readonly cause: string
  /** Of a refusal: why, for programs. */
  readonly code?: string
  readonly retryable?: false
}

export type Wire<T> = T extends { readonly token: bigint }
  ? Omit<T, 'token'> & WireToken
  : T extends Unknown
    ? WireUnknown
    : T

export function answerToWire(answer: AnyAnswer): Wire<AnyAnswer> {
  switch (answer.kind) {
    case 'held':
      return { kind: 'held', token: String(answer.token), count: answer.count, contended: answer.contended }
    case 'unknown':
      return unknownToWire(answer)
    default:
      return answer
  }
}

export function unknownToWire({ cause, retryable }: Unknown): WireUnknown {
  const words = cause instanceof Error ? cause.message : String(cause)
  return retryable === false
    ? { kind: 'unknown', cause: words, retryable }
    : { kind: 'unknown', cause: words }
}

export interface WireRelease {
  readonly released: Wire<ReleaseAnswer>
  readonly next?: Wire<ClaimAnswer>
}

export function releaseToWire({ released, next }: ReleaseResult): WireRelease {
  const first = answerToWire(released) as Wire<ReleaseAnswer>
  return next === undefined
    ? { released: first }
    : { released: first, next: answerToWire(next) as Wire<ClaimAnswer> }
}

export function eventToWire(event: StoreEvent): Wire<StoreEvent> {
  return event.kind === 'granted' ? { ...event, token: String(event.token) } : event
}

type WireClaim = Omit<ClaimInfo, 'token'> & { readonly token?: string }

export interface WireInfo extends Omit<NameInfo, 'holders' | 'waiters'> {
  readonly holders: readonly WireClaim[]
  readonly waiters: readonly WireClaim[]
}

export function infoToWire({ name, capacity, holders, waiters }: NameInfo): WireInfo {
  return { name, capacity, holders: holders.map(claimToWire), waiters: waiters.map(claimToWire) }
}

function claimToWire({ token, ...claim }: ClaimInfo): WireClaim {
  return token === undefined ? claim : { ...claim, token: String(token) }
}

/** What stands in the second place of a server's line. */
export type Spoken =
  | Hello
  | { readonly session: string; readonly event: Wire<StoreEvent> }
  | Wire<AnyAnswer>
  | readonly Wire<RenewAnswer>[]
  | WireRelease
  | WireInfo
  | ListPage
  | { readonly kind: 'done' }
