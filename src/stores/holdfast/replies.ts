import type {
  Capabilities,
  ClaimAnswer,
  ClaimInfo,
  DowngradeAnswer,
  Guarantees,
  Held,
  ListPage,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  StoreEvent,
  Unknown,
} from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { RefusedError } from './refused.ts'
import type { Hello } from './wire.ts'

/**
 * What a server says, made into what the runtime may trust. It may be another program, an older one, or hostile: exactly
 * the shapes of wire.ts are taken, and everything else is `unknown`.
 */

type Fields = Readonly<Record<string, unknown>>

const DIGITS = /^\d{1,30}$/

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isWhole = (value: unknown, least: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

function nonsense(): Unknown {
  return unknown(new Error('The lock server gave an answer that is none'))
}

function tokenOf(value: unknown): bigint | null {
  return typeof value === 'string' && DIGITS.test(value) ? BigInt(value) : null
}

function unknownOf({ cause, retryable, code }: Fields): Unknown {
  const words = typeof cause === 'string' ? cause : 'The lock server does not say why'
  const error = new RefusedError(words, {
    retryable: retryable !== false,
    code: typeof code === 'string' ? code : undefined,
  })
  return retryable === false ? unknownForGood(error) : unknown(error)
}

function heldOf({ token, count, contended }: Fields): Held | Unknown {
  const first = tokenOf(token)
  if (first === null || !isWhole(count, 1) || typeof contended !== 'boolean') return nonsense()
  return { kind: 'held', token: first, count, contended }
}

function retryAfterOf({ retryAfter }: Fields): { readonly retryAfter?: number } {
  return isTime(retryAfter) && retryAfter >= 0 ? { retryAfter } : {}
}

export function claimAnswerOf(said: unknown): ClaimAnswer {
  if (!isFields(said)) return nonsense()
  switch (said['kind']) {
    case 'held':
      return heldOf(said)
    case 'queued':
      return { kind: 'queued', ...retryAfterOf(said) }
    case 'busy':
      return { kind: 'busy', ...retryAfterOf(said) }
    case 'mismatch': {
      const { capacity } = said
      return isWhole(capacity, 1) ? { kind: 'mismatch', capacity } : nonsense()
    }
    case 'unknown':
      return unknownOf(said)
    default:
      return nonsense()
  }
}

export function renewAnswerOf(said: unknown): RenewAnswer {
  if (!isFields(said)) return nonsense()
  switch (said['kind']) {
    case 'renewed': {
      const { contended } = said
      return typeof contended === 'boolean' ? { kind: 'renewed', contended } : nonsense()
    }
    case 'held':
      return heldOf(said)
    case 'queued':
      return { kind: 'queued', ...retryAfterOf(said) }
    case 'lost':
      return { kind: 'lost' }
    case 'unknown':
      return unknownOf(said)
    default:
      return nonsense()
  }
}

/** One for each that was asked about. */
export function renewAnswersOf(said: unknown, count: number): readonly RenewAnswer[] {
  if (Array.isArray(said)) return Array.from({ length: count }, (_, index) => renewAnswerOf(said[index]))
  const whole = isFields(said) && said['kind'] === 'unknown' ? unknownOf(said) : nonsense()
  return Array.from({ length: count }, () => whole)
}

export function releaseAnswerOf(said: unknown): ReleaseAnswer {
  if (!isFields(said)) return nonsense()
  const { kind } = said
  if (kind === 'released' || kind === 'not-held') return { kind }
  return kind === 'unknown' ? unknownOf(said) : nonsense()
}

export function releaseResultOf(said: unknown, withNext: boolean): ReleaseResult {
  // A refusal of the whole comes bare.
  const whole = isFields(said) && said['kind'] === undefined ? said : { released: said, next: said }
  const released = releaseAnswerOf(whole['released'])
  return withNext ? { released, next: claimAnswerOf(whole['next']) } : { released }
}

export function downgradeAnswerOf(said: unknown): DowngradeAnswer {
  if (!isFields(said)) return nonsense()
  const { kind } = said
  if (kind === 'downgraded' || kind === 'lost') return { kind }
  return kind === 'unknown' ? unknownOf(said) : nonsense()
}

/** Null where it was agreed to. */
export function refusalOf(said: unknown): Unknown | null {
  if (!isFields(said)) return nonsense()
  if (said['kind'] === 'done') return null
  return said['kind'] === 'unknown' ? unknownOf(said) : nonsense()
}

export function nameInfoOf(said: unknown): NameInfo | Unknown {
  if (!isFields(said)) return nonsense()
  if (said['kind'] === 'unknown') return unknownOf(said)
  const { name, capacity } = said
  const holders = claimsOf(said['holders'])
  const waiters = claimsOf(said['waiters'])
  if (typeof name !== 'string' || !isWhole(capacity, 0) || holders === null || waiters === null)
    return nonsense()
  return { name, capacity, holders, waiters }
}

function claimsOf(said: unknown): readonly ClaimInfo[] | null {
  if (!Array.isArray(said)) return null
  const claims: ClaimInfo[] = []
  for (const one of said as unknown[]) {
    if (!isFields(one)) return null
    const { id, owner, weight, expiresIn } = one
    const token = one['token'] === undefined ? undefined : tokenOf(one['token'])
    if (typeof id !== 'string' || typeof owner !== 'string' || !isWhole(weight, 1) || !isTime(expiresIn))
      return null
    if (token === null) return null
    claims.push({ id, owner, weight, expiresIn, ...(token === undefined ? {} : { token }) })
  }
  return claims
}

export function listPageOf(said: unknown): ListPage | Unknown {
  if (!isFields(said)) return nonsense()
  if (said['kind'] === 'unknown') return unknownOf(said)
  const { names, cursor } = said
  const isNames = Array.isArray(names) && names.every((name) => typeof name === 'string')
  if (!isNames || (cursor !== undefined && typeof cursor !== 'string')) return nonsense()
  return cursor === undefined ? { names } : { names, cursor }
}

/** Null for what is no event: events may get lost, so nothing has to be done about it. */
export function eventOf(said: unknown): { readonly session: string; readonly event: StoreEvent } | null {
  if (!isFields(said)) return null
  const { session, event } = said
  if (typeof session !== 'string' || !isFields(event)) return null
  const { kind, name, id } = event
  if (kind === 'gap') return { session, event: { kind } }
  if (typeof name !== 'string') return null
  if (kind === 'freed') return { session, event: { kind, name } }
  if (typeof id !== 'string') return null
  if (kind === 'contended' || kind === 'revoked') return { session, event: { kind, name, id } }
  const grant = kind === 'granted' ? heldOf(event) : nonsense()
  return grant.kind === 'held' ? { session, event: { ...grant, kind: 'granted', name, id } } : null
}

const OUTCOMES = ['holds', 'breaks', 'fenced', 'n/a'] as const
const FAULTS: readonly (keyof Guarantees)[] = [
  'holderCrash',
  'holderPause',
  'partition',
  'storeRestart',
  'failover',
  'storeClockJump',
]

/** Null when these are not the first words of a lock server. */
export function helloOf(said: unknown): Hello | null {
  if (!isFields(said) || said['kind'] !== 'hello') return null
  const { store, downgrade } = said
  const capabilities = capabilitiesOf(said['capabilities'])
  if (typeof store !== 'string' || capabilities === null) return null
  return { kind: 'hello', store, capabilities, downgrade: downgrade === true }
}

function capabilitiesOf(said: unknown): Capabilities | null {
  if (!isFields(said)) return null
  const {
    queue,
    shared,
    permits,
    fencing,
    wakeups,
    reach,
    minTtl,
    maxTtl,
    earlyExpiry,
    lateExpiry = 0,
    waitsAfterCrash = false,
    guarantees,
  } = said
  const switches = [queue, shared, permits, waitsAfterCrash].every((one) => typeof one === 'boolean')
  const words =
    (fencing === 'monotonic' || fencing === 'weak') &&
    (wakeups === 'push' || wakeups === 'poll') &&
    (reach === 'process' || reach === 'machine' || reach === 'network')
  const times =
    isWhole(minTtl, 1) &&
    isWhole(maxTtl, 1) &&
    [earlyExpiry, lateExpiry].every((one) => isTime(one) && one >= 0)
  if (!switches || !words || !times || !isFields(guarantees)) return null
  const known = FAULTS.every((fault) => (OUTCOMES as readonly unknown[]).includes(guarantees[fault]))
  return known ? (said as unknown as Capabilities) : null
}
