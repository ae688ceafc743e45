import type {
  ConfirmAnswer,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ReleaseAnswer,
  StoreEvent,
  VoteAnswer,
  VoteInfo,
} from '../../core/contract.ts'
import { nameOfHeader } from './keys.ts'
import { unexpected } from './wire.ts'

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

// Most of the time all nodes of a quorum say the same.
let lastToken: unknown
let lastGrant: VoteAnswer & { readonly kind: 'granted' } = {
  kind: 'granted',
  token: 0n,
  count: 0,
  contended: false,
}

export function readVote(reply: unknown, count: number): VoteAnswer {
  if (typeof reply === 'number') {
    if (reply !== lastToken || count !== lastGrant.count) {
      lastToken = reply
      lastGrant = { kind: 'granted', token: BigInt(reply), count, contended: false }
    }
    return lastGrant
  }
  const text = textOf(reply)
  const rest = text.slice(1)
  switch (text[0]) {
    case 'b':
      return rest === '' ? BUSY : { kind: 'busy', retryAfter: Number(rest) }
    case 'n':
      return { kind: 'not-ready', readyIn: Number(rest) }
    case 'g': {
      const [token = '', given, waiting] = rest.split(' ')
      return { kind: 'granted', token: BigInt(token), count: Number(given), contended: waiting === '1' }
    }
    default:
      return { kind: 'granted', token: BigInt(text), count, contended: false }
  }
}

export function readConfirm(reply: unknown): ConfirmAnswer {
  switch (textOf(reply)) {
    case 'c':
      return CONFIRMED
    case 'f':
      return FENCED
    default:
      return LOST
  }
}

export function extendArguments(request: ExtendRequest): string[] {
  const { id, attempt, ttl, probation, token, top, tokens, mode, owner } = request
  const restore = mode === 'restore' ? '1' : '0'
  const numbers = [attempt, ttl, probation, token, top, tokens].map(String)
  return [id, ...numbers, restore, owner]
}

export function readExtensions(reply: unknown, requests: readonly ExtendRequest[]): readonly ExtendAnswer[] {
  if (!Array.isArray(reply) || reply.length !== requests.length) throw unexpected()
  return requests.map(({ tokens }, at) => readExtension(reply[at], tokens))
}

function readExtension(reply: unknown, count: number): ExtendAnswer {
  if (reply === 1) return RENEWED
  if (reply === 2) return RENEWED_CONTENDED
  const text = textOf(reply)
  switch (text[0]) {
    case 'g': {
      const [token = '', waiting] = text.slice(1).split(' ')
      return { kind: 'granted', token: BigInt(token), count, contended: waiting === '1' }
    }
    case 'e':
      return FREE
    case 'f':
      return FENCED
    case 'n':
      return { kind: 'not-ready', readyIn: Number(text.slice(1)) }
    default:
      return LOST
  }
}

export function readGone(reply: unknown): ReleaseAnswer {
  return reply === 1 ? RELEASED : NOT_HELD
}

export function readHolder(name: string, reply: unknown): VoteInfo | Free {
  if (!Array.isArray(reply)) throw unexpected()
  if (reply.length === 0) return FREE
  const [id = '', attempt, owner = '', token = '', expiresIn] = reply.map(textOf)
  return { name, id, attempt: Number(attempt), owner, token: BigInt(token), expiresIn: Number(expiresIn) }
}

/** Milliseconds until the node votes. */
export function readReadiness(reply: unknown): number {
  const text = textOf(reply)
  return text.startsWith('n') ? Number(text.slice(1)) : 0
}

/** What a node tells a session; `undefined` for anything else on its channel. */
export function readNotice(message: string): StoreEvent | undefined {
  const [, kind, id, cell = ''] = /^(?:(f)|c (\S+)) (.*)$/s.exec(message) ?? []
  const name = nameOfHeader(cell)
  if (name === undefined) return undefined
  if (kind === 'f') return { kind: 'freed', name }
  return id === undefined ? undefined : { kind: 'contended', name, id }
}

function textOf(reply: unknown): string {
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number' || Buffer.isBuffer(reply)) return String(reply)
  throw unexpected()
}
