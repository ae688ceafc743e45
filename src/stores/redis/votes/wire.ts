import type {
  ConfirmAnswer,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ReleaseAnswer,
  StoreEvent,
  VoteAnswer,
  VoteInfo,
} from '../../../core/contract.ts'
import { failed } from '../failure.ts'
import { nameOfHeader } from '../keys.ts'
import { doneOf, listOf, textOf, tokenOf, unexpected, wholeOf } from '../replies.ts'

/** What the scripts of votes are given and what they answer. Their headers are the other half of this file. */

const RENEWED = { kind: 'renewed', contended: false } as const
const RENEWED_CONTENDED = { kind: 'renewed', contended: true } as const
const CONFIRMED = { kind: 'confirmed' } as const
const LOST = { kind: 'lost' } as const
const FENCED = { kind: 'fenced' } as const
const FREE = { kind: 'free' } as const
const BUSY = { kind: 'busy' } as const
const RELEASED = { kind: 'released' } as const
const NOT_HELD = { kind: 'not-held' } as const

/** Tokens begin at a time in microseconds; anything lower is the answer to something else. */
const LEAST_DIGITS = 7
const LEAST_TOKEN = 1e6
const GRANTED = /^g([1-9]\d{0,18}) (\d{1,10}) ([01])$/
const EXTENDED = /^g([1-9]\d{0,18}) ([01])$/

export function readVote(reply: unknown, count: number): VoteAnswer {
  if (typeof reply === 'number') {
    if (!Number.isSafeInteger(reply) || reply < LEAST_TOKEN) throw unexpected()
    return { kind: 'granted', token: BigInt(reply), count, contended: false }
  }
  const text = textOf(reply)
  const rest = text.slice(1)
  switch (text[0]) {
    case 'b':
      return rest === '' ? BUSY : { kind: 'busy', retryAfter: wholeOf(rest) }
    case 'n':
      return { kind: 'not-ready', readyIn: wholeOf(rest) }
    case 'g': {
      const [, token, given, waiting] = GRANTED.exec(text) ?? []
      return {
        kind: 'granted',
        token: tokenOf(token),
        count: wholeOf(given),
        contended: waiting === '1',
      }
    }
    default:
      if (text.length < LEAST_DIGITS) throw unexpected()
      return { kind: 'granted', token: tokenOf(text), count, contended: false }
  }
}

export function readConfirm(reply: unknown): ConfirmAnswer {
  switch (textOf(reply)) {
    case 'c':
      return CONFIRMED
    case 'f':
      return FENCED
    case 'l':
      return LOST
    default:
      throw unexpected()
  }
}

export function extendArguments(request: ExtendRequest): string[] {
  const { id, attempt, ttl, probation, token, top, tokens, mode, owner } = request
  const restore = mode === 'restore' ? '1' : '0'
  const numbers = [attempt, ttl, probation, token, top, tokens].map(String)
  return [id, ...numbers, restore, owner]
}

export function readExtensions(reply: unknown, requests: readonly ExtendRequest[]): readonly ExtendAnswer[] {
  const answers = listOf(reply, requests.length)
  return requests.map(({ tokens }, at) => readExtension(answers[at], tokens))
}

/** One that cannot be read, or that failed by itself, says nothing about the others. */
function readExtension(reply: unknown, count: number): ExtendAnswer {
  try {
    return readOne(textOf(reply), count)
  } catch (error) {
    return failed(error)
  }
}

function readOne(text: string, count: number): ExtendAnswer {
  switch (text) {
    case '1':
      return RENEWED
    case '2':
      return RENEWED_CONTENDED
    case 'e':
      return FREE
    case 'f':
      return FENCED
    case 'l':
      return LOST
  }
  if (text.startsWith('n')) return { kind: 'not-ready', readyIn: wholeOf(text.slice(1)) }
  if (text.startsWith('x')) throw new Error(text.slice(1))
  const [, token, waiting] = EXTENDED.exec(text) ?? []
  return { kind: 'granted', token: tokenOf(token), count, contended: waiting === '1' }
}

export function readGone(reply: unknown): ReleaseAnswer {
  return doneOf(reply) ? RELEASED : NOT_HELD
}

export function readHolder(name: string, reply: unknown): VoteInfo | Free {
  const facts = listOf(reply)
  if (facts.length === 0) return FREE
  const [id, attempt, owner, token, expiresIn] = listOf(facts, 5)
  return {
    name,
    id: textOf(id),
    attempt: wholeOf(attempt),
    owner: textOf(owner),
    token: tokenOf(token),
    expiresIn: wholeOf(expiresIn),
  }
}

/** Milliseconds until the node votes. */
export function readReadiness(reply: unknown): number {
  const text = textOf(reply)
  if (text === 'y') return 0
  if (text.startsWith('n')) return wholeOf(text.slice(1))
  throw unexpected()
}

/** What a node tells a session; `undefined` for anything else on its channel. */
export function readNotice(message: string): StoreEvent | undefined {
  const [, kind, id, cell = ''] = /^(?:(f)|c (\S+)) (.*)$/s.exec(message) ?? []
  const name = nameOfHeader(cell)
  if (name === undefined) return undefined
  if (kind === 'f') return { kind: 'freed', name }
  return id === undefined ? undefined : { kind: 'contended', name, id }
}
