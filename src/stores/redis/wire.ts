import type {
  ClaimAnswer,
  ClaimInfo,
  ClaimRequest,
  DowngradeAnswer,
  Held,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  StoreEvent,
} from '../../core/contract.ts'
import { nameOfHeader } from './keys.ts'

/** What the scripts are given and what they answer. Their headers are the other half of this file. */

export const DAY_MS = 86_400_000
const TEN_YEARS_MS = 3_650 * DAY_MS

/** By how much the header of a name outlives a lease, and with it the fence. The scripts know the same numbers. */
export function outlives(durable: boolean): number {
  return durable ? TEN_YEARS_MS : DAY_MS
}

/** What a claim asks for, as it travels and as it is stored: one string, because every argument has its price. */
export function terms({ weight, capacity, tokens, ttl, patience, owner }: ClaimRequest): string {
  return `${tokens} ${weight} ${capacity} ${ttl} ${patience} ${owner}`
}

/** A claim that follows a release in the same command. */
export function nextTerms(next: ClaimRequest): string {
  return `${next.whenBusy === 'queue' ? 'q' : 't'}${next.id} ${terms(next)}`
}

export function renewTerms({ ttl, patience, tokens }: RenewRequest): string {
  return `${ttl} ${patience} ${tokens}`
}

const QUEUED = { kind: 'queued' } as const
const BUSY = { kind: 'busy' } as const
const LOST = { kind: 'lost' } as const
export const RENEWED: RenewAnswer = { kind: 'renewed', contended: false }
const RENEWED_CONTENDED = { kind: 'renewed', contended: true } as const
const RELEASED = { kind: 'released' } as const
const NOT_HELD = { kind: 'not-held' } as const
const JUST_RELEASED: ReleaseResult = { released: RELEASED }

/** `count`: how many tokens were asked for, which a bare token in the answer stands for. */
export function readClaim(reply: unknown, count: number): ClaimAnswer {
  const text = asText(reply)
  const rest = text.slice(1)
  switch (text[0]) {
    case 'h':
      return readHeld(rest)
    case 'q':
      return QUEUED
    case 'b':
      return rest === '' ? BUSY : { kind: 'busy', retryAfter: Number(rest) }
    case 'm':
      return { kind: 'mismatch', capacity: Number(rest) }
    default:
      return { kind: 'held', token: BigInt(text), count, contended: false }
  }
}

function readHeld(fields: string): Held {
  const [token = '', count, contended] = fields.split(' ')
  return { kind: 'held', token: BigInt(token), count: Number(count), contended: contended === '1' }
}

export function readRenewal(reply: unknown): RenewAnswer {
  switch (reply) {
    case 0:
      return LOST
    case 1:
      return RENEWED
    case 2:
      return RENEWED_CONTENDED
    default: {
      const text = asText(reply)
      return text === 'q' ? QUEUED : readHeld(text.slice(1))
    }
  }
}

export function readReleased(reply: unknown): ReleaseAnswer {
  return reply === 1 ? RELEASED : NOT_HELD
}

export function readDowngraded(reply: unknown): DowngradeAnswer {
  return reply === 1 ? { kind: 'downgraded' } : { kind: 'lost' }
}

export function readRelease(reply: unknown): ReleaseResult {
  return reply === 1 ? JUST_RELEASED : { released: NOT_HELD }
}

export function readReleaseAndNext(reply: unknown, count: number): ReleaseResult {
  const [released, next] = asList(reply)
  return { released: readReleased(released), next: readClaim(next, count) }
}

export function readName(name: string, reply: unknown): NameInfo {
  const facts = asList(reply)
  let at = 2
  const text = (): string => asText(facts[at++])
  const holders: ClaimInfo[] = []
  for (let left = Number(facts[1]); left > 0; left--) {
    const [id, owner, weight, token, expiresIn] = [text(), text(), text(), text(), text()]
    holders.push({ id, owner, weight: Number(weight), token: BigInt(token), expiresIn: Number(expiresIn) })
  }
  const waiters: ClaimInfo[] = []
  while (at < facts.length) {
    const [id, owner, weight, expiresIn] = [text(), text(), text(), text()]
    waiters.push({ id, owner, weight: Number(weight), expiresIn: Number(expiresIn) })
  }
  return { name, capacity: Number(facts[0]), holders, waiters }
}

const GRANTED = /^g (\S+) (\d+) (\d+) ([01]) (.*)$/s
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

/** The drivers give strings for bulk replies; a client that was told to give Buffers gives those. */
function asText(reply: unknown): string {
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number' || Buffer.isBuffer(reply)) return String(reply)
  throw unexpected()
}

function asList(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply
  throw unexpected()
}

export function unexpected(): Error {
  return new TypeError('the server answered with something that no script of this store returns')
}
