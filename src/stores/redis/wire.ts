import type {
  ClaimAnswer,
  ClaimInfo,
  ClaimRequest,
  DowngradeAnswer,
  Held,
  NameInfo,
  Queued,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  StoreEvent,
  Unknown,
} from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { nameOfHeader } from './keys.ts'
import { doneOf, listOf, textOf, tokenOf, unexpected, wholeOf } from './replies.ts'

/** What the scripts are given and what they answer. Their headers are the other half of this file. */

/** By how much the header of a name outlives a lease, and with it the fence. The scripts know the same number. */
export const DAY_MS = 86_400_000

type Terms = Pick<ClaimRequest, 'weight' | 'capacity' | 'tokens' | 'ttl' | 'patience' | 'owner'>

/** What a claim asks for, as it travels and as it is stored: one string, because every argument has its price. */
function terms({ weight, capacity, tokens, ttl, patience, owner }: Terms, mark: string): string {
  return `${tokens} ${weight} ${capacity} ${ttl} ${patience} ${mark}${owner}`
}

/** Before the owner of a claim whose process is told nothing and asks: the scripts pass nobody over who has it. */
const ASKS = '\u0001'

/** The terms of one claim after the other: most that a process makes differ in nothing but their names and ids. */
export class ClaimTerms {
  /** A copy: the request is the caller's, who may use it again for other terms. */
  private last: Terms | null = null
  private text = ''
  private readonly mark: string

  constructor(polled = false) {
    this.mark = polled ? ASKS : ''
  }

  of(request: ClaimRequest): string {
    if (this.last === null || !sameTerms(this.last, request)) {
      const { weight, capacity, tokens, ttl, patience, owner } = request
      this.text = terms(request, this.mark)
      this.last = { weight, capacity, tokens, ttl, patience, owner }
    }
    return this.text
  }
}

function sameTerms(a: Terms, b: Terms): boolean {
  return (
    a.tokens === b.tokens &&
    a.weight === b.weight &&
    a.capacity === b.capacity &&
    a.ttl === b.ttl &&
    a.patience === b.patience &&
    a.owner === b.owner
  )
}

/** A claim that follows a release in the same command. */
export function nextTerms(next: ClaimRequest, terms: ClaimTerms): string {
  return `${next.whenBusy === 'queue' ? 'q' : 't'}${next.id} ${terms.of(next)}`
}

export function renewTerms({ ttl, patience, tokens }: RenewRequest): string {
  return `${ttl} ${patience} ${tokens}`
}

const QUEUED = { kind: 'queued' } as const
const BUSY = { kind: 'busy' } as const
const LOST = { kind: 'lost' } as const
const RENEWED: RenewAnswer = { kind: 'renewed', contended: false }
const RENEWED_CONTENDED = { kind: 'renewed', contended: true } as const
const RELEASED = { kind: 'released' } as const
const NOT_HELD = { kind: 'not-held' } as const
const JUST_RELEASED: ReleaseResult = { released: RELEASED }

/** A token on its own is a time in microseconds; anything shorter is the answer to something else. */
const LEAST_DIGITS = 7
const HELD = /^h([1-9]\d{0,18}) (\d{1,10}) ([01])$/

/** `count`: how many tokens were asked for, which a bare token in the answer stands for. */
export function readClaim(reply: unknown, count: number): ClaimAnswer {
  // A number would be the answer to something else.
  if (typeof reply === 'number' || typeof reply === 'bigint') throw unexpected()
  const text = textOf(reply)
  switch (text[0]) {
    case 'h':
      return readHeld(text)
    case 'q':
      return readQueued(text.slice(1))
    case 'b':
      return text === 'b' ? BUSY : { kind: 'busy', retryAfter: wholeOf(text.slice(1)) }
    case 'm':
      return { kind: 'mismatch', capacity: wholeOf(text.slice(1)) }
    default:
      if (text.length < LEAST_DIGITS) throw unexpected()
      return { kind: 'held', token: tokenOf(text), count, contended: false }
  }
}

function readQueued(rest: string): Queued {
  return rest === '' ? QUEUED : { kind: 'queued', retryAfter: wholeOf(rest) }
}

function readHeld(text: string): Held {
  const [, token = '', count, contended] = HELD.exec(text) ?? []
  return { kind: 'held', token: tokenOf(token), count: wholeOf(count), contended: contended === '1' }
}

export function readRenewal(reply: unknown): RenewAnswer {
  // Most by far are this one.
  if (reply === 1) return RENEWED
  const text = textOf(reply)
  switch (text) {
    case '0':
      return LOST
    case '1':
      return RENEWED
    case '2':
      return RENEWED_CONTENDED
    default:
      return text.startsWith('q') ? readQueued(text.slice(1)) : readHeld(text)
  }
}

/** Of many in one script: `null` for each one that has to be asked about by itself. */
export function readKept(reply: unknown, count: number): (RenewAnswer | null)[] {
  if (!Array.isArray(reply)) {
    if (!doneOf(reply)) throw unexpected()
    return Array.from({ length: count }, () => RENEWED)
  }
  return listOf(reply, count).map((one) => {
    const renewal = wholeOf(one) === 0 ? null : readRenewal(one)
    if (renewal !== null && renewal.kind !== 'renewed') throw unexpected()
    return renewal
  })
}

export function readReleased(reply: unknown): ReleaseAnswer {
  return doneOf(reply) ? RELEASED : NOT_HELD
}

export function readDowngraded(reply: unknown): DowngradeAnswer {
  return doneOf(reply) ? { kind: 'downgraded' } : { kind: 'lost' }
}

export function readRelease(reply: unknown): ReleaseResult {
  return doneOf(reply) ? JUST_RELEASED : { released: NOT_HELD }
}

const REPEATED: Unknown = unknown(
  new Error('the claim was gone already: the client may have sent its release twice'),
)

/** Of a release that the driver may have sent twice. If the claim is gone, the first of them most likely did it. */
export function repeatedRelease(result: ReleaseResult): ReleaseResult {
  return result.released.kind === 'not-held' ? { ...result, released: REPEATED } : result
}

export function readReleaseAndNext(reply: unknown, count: number): ReleaseResult {
  const [released, next] = listOf(reply, 2)
  return { released: readReleased(released), next: readClaim(next, count) }
}

const HOLDER_FACTS = 5
const WAITER_FACTS = 4

export function readName(name: string, reply: unknown): NameInfo {
  const facts = listOf(reply)
  const capacity = wholeOf(facts[0])
  const waitersAt = 2 + HOLDER_FACTS * wholeOf(facts[1])
  if (waitersAt > facts.length || (facts.length - waitersAt) % WAITER_FACTS > 0) throw unexpected()
  const holders: ClaimInfo[] = []
  for (let at = 2; at < waitersAt; at += HOLDER_FACTS) {
    const [id, owner, weight, token, expiresIn] = facts.slice(at, at + HOLDER_FACTS)
    holders.push({ ...aboutClaim(id, owner, weight, expiresIn), token: tokenOf(token) })
  }
  const waiters: ClaimInfo[] = []
  for (let at = waitersAt; at < facts.length; at += WAITER_FACTS) {
    const [id, owner, weight, expiresIn] = facts.slice(at, at + WAITER_FACTS)
    waiters.push(aboutClaim(id, owner, weight, expiresIn))
  }
  return { name, capacity, holders, waiters }
}

function aboutClaim(id: unknown, owner: unknown, weight: unknown, expiresIn: unknown): ClaimInfo {
  return { id: textOf(id), owner: ownerOf(owner), weight: wholeOf(weight), expiresIn: wholeOf(expiresIn) }
}

/** What anybody may write comes behind a sign that keeps a client from reading it as JSON. */
function ownerOf(reply: unknown): string {
  const text = textOf(reply)
  if (!text.startsWith('=')) throw unexpected()
  return text.slice(text.startsWith(ASKS, 1) ? 2 : 1)
}

const GRANTED = /^g (\S+) ([1-9]\d{0,18}) (\d{1,10}) ([01]) (.*)$/s
const CONTENDED = /^c (\S+) (.*)$/s

/** A message of the scripts; `undefined` for anything else that somebody may publish on a session's channel. */
export function readMessage(message: string): StoreEvent | undefined {
  const granted = GRANTED.exec(message)
  if (granted !== null) {
    const [, id = '', token = '', count, contended, header = ''] = granted
    const name = nameOfHeader(header)
    if (name === undefined) return undefined
    return {
      kind: 'granted',
      name,
      id,
      token: BigInt(token),
      count: Number(count),
      contended: contended === '1',
    }
  }
  const [, id, header] = CONTENDED.exec(message) ?? []
  const name = header === undefined ? undefined : nameOfHeader(header)
  return id === undefined || name === undefined ? undefined : { kind: 'contended', name, id }
}

/** A step of a SCAN. */
export function readScan(reply: unknown): { readonly next: string; readonly keys: readonly string[] } {
  const [next, ...keys] = listOf(reply).map(textOf)
  if (next === undefined || !/^\d{1,20}$/.test(next)) throw unexpected()
  return { next, keys }
}
