import { sessionOf, WITHDRAWN_MS } from './claim-queue.ts'
import type { Instant } from './claim-queue.ts'
import type {
  ClaimRef,
  ConfirmRequest,
  ExtendRequest,
  StoreEvent,
  VoteInfo,
  VoteRef,
  VoteRequest,
} from './contract.ts'

/**
 * What one store of a quorum knows of one name, and how it votes. Redis runs the same rule as scripts.
 *
 * Each store has a fence: the highest token that was ever set apart there. A claim that is granted holds the name there
 * from then on, and `created` is the token with which that began: **whatever others were granted here before is below
 * `created`, and while it lasts others are granted nothing.** A block of tokens is accepted at a store only while the
 * claim holds it with `created` no higher than the block; the fence is then above the block. A claim has a block when a
 * majority accepted it. Two majorities share a store, and there one block came after the other: so it is the larger one.
 *
 * A message that is late can make a claim hold the name again, but then with a `created` above everything that happened
 * meanwhile: that is how a holder that was overtaken is told so. test/unit/core/vote-cell.model.test.ts goes through
 * every order of events, and shows what breaks with anything less.
 */
export interface VoteCell {
  fence: number
  holder: CellHolder | null
  /** Sessions that want to hear when the name may be free, in the order in which they came. */
  readonly interested: Set<string>
  /** Withdrawn ids, and until when they are refused. */
  readonly withdrawn: Map<string, number>
}

export interface CellHolder {
  readonly id: string
  readonly attempt: number
  readonly owner: string
  readonly created: number
  /** The last block that was set apart or accepted. */
  token: number
  count: number
  expiresAt: number
}

export type CellAnswer =
  | { readonly kind: 'granted'; readonly token: number; readonly count: number; readonly contended: boolean }
  | { readonly kind: 'renewed'; readonly contended: boolean }
  | { readonly kind: 'busy'; readonly retryAfter?: number }
  | { readonly kind: 'confirmed' | 'free' | 'fenced' | 'lost' | 'released' | 'not-held' }

export interface CellNotice {
  readonly session: string
  readonly event: StoreEvent
}

const MICROS = 1_000_000
/** The first part of an attempt's number says whose it is, the rest counts. */
export const ATTEMPTS: number = 2 ** 32

export function emptyCell(fence = 0): VoteCell {
  return { fence, holder: null, interested: new Set(), withdrawn: new Map() }
}

/** Nothing is known here but the fence, and who would like to hear of a release that will not come. */
export function isIdleCell({ holder, withdrawn }: VoteCell, { ms }: Instant): boolean {
  for (const until of withdrawn.values()) if (until > ms) return false
  return holder === null || holder.expiresAt <= ms
}

/**
 * The next token. Whole seconds, so that several stores propose the same one, and an answer of each is enough; a store
 * that lost its memory, and stays out for some seconds, is above everything that it gave before.
 */
function next(fence: number, { micros }: Instant): number {
  return Math.max(fence + 1, Math.floor(micros / MICROS) * MICROS)
}

export function vote(cell: VoteCell, request: VoteRequest, now: Instant, notices: CellNotice[]): CellAnswer {
  const { id, attempt, tokens, ttl, owner, interest } = request
  expire(cell, now)
  if ((cell.withdrawn.get(id) ?? 0) > now.ms) return { kind: 'busy' }
  const { holder } = cell
  if (holder !== null && (holder.id !== id || holder.attempt > attempt || !isOfOneClient(holder, request))) {
    if (interest) beInterested(cell, holder, request, notices)
    return { kind: 'busy', retryAfter: holder.expiresAt - now.ms }
  }
  // A copy of the same request changes nothing but the time. An earlier attempt of the same claim was given up.
  if (holder?.attempt === attempt) holder.expiresAt = now.ms + ttl
  else {
    const token = next(cell.fence, now)
    cell.fence = token + tokens - 1
    cell.holder = { id, attempt, owner, created: token, token, count: tokens, expiresAt: now.ms + ttl }
  }
  const { token = 0, count = 0 } = cell.holder ?? {}
  return { kind: 'granted', token, count, contended: cell.interested.size > 0 }
}

export function confirm(cell: VoteCell, request: ConfirmRequest, now: Instant): CellAnswer {
  expire(cell, now)
  const { holder } = cell
  if (holder === null || !isMine(holder, request)) return { kind: 'lost' }
  const token = Number(request.token)
  if (holder.created > Number(request.base)) return { kind: 'fenced' }
  if (holder.token < token) {
    holder.token = token
    holder.count = request.count
  }
  cell.fence = Math.max(cell.fence, token + request.count - 1)
  return { kind: 'confirmed' }
}

export function extend(cell: VoteCell, request: ExtendRequest, now: Instant): CellAnswer {
  expire(cell, now)
  const { id, attempt, owner, ttl, tokens, mode } = request
  const [token, top] = [Number(request.token), Number(request.top)]
  if (cell.holder === null) {
    if (cell.fence > top || (cell.withdrawn.get(id) ?? 0) > now.ms) return { kind: 'fenced' }
    if (mode === 'keep') return { kind: 'free' }
    cell.holder = { id, attempt, owner, created: token, token, count: top - token + 1, expiresAt: 0 }
  }
  const { holder } = cell
  if (!isMine(holder, request)) return { kind: cell.fence > top ? 'fenced' : 'lost' }
  if (holder.created > top) return { kind: 'fenced' }
  holder.expiresAt = now.ms + ttl
  const contended = cell.interested.size > 0
  if (holder.token < token) {
    holder.token = token
    holder.count = top - token + 1
  }
  cell.fence = Math.max(cell.fence, top)
  if (tokens === 0) return { kind: 'renewed', contended }
  holder.token = next(cell.fence, now)
  holder.count = tokens
  cell.fence = holder.token + tokens - 1
  return { kind: 'granted', token: holder.token, count: tokens, contended }
}

export function release(
  cell: VoteCell,
  ref: VoteRef,
  { now, tell, reachable }: { now: Instant; tell: boolean; reachable: (session: string) => boolean },
  notices: CellNotice[],
): CellAnswer {
  expire(cell, now)
  const { holder } = cell
  if (holder === null || holder.id !== ref.id || (ref.attempt !== 0 && holder.attempt !== ref.attempt)) {
    return { kind: 'not-held' }
  }
  cell.holder = null
  if (tell) tellFirst(cell, ref.name, reachable, notices)
  return { kind: 'released' }
}

export function withdraw(cell: VoteCell, { id }: ClaimRef, now: Instant): void {
  for (const [withdrawn, until] of cell.withdrawn) if (until <= now.ms) cell.withdrawn.delete(withdrawn)
  cell.withdrawn.set(id, now.ms + WITHDRAWN_MS)
}

export function viewCell(cell: VoteCell, name: string, now: Instant): VoteInfo | { readonly kind: 'free' } {
  expire(cell, now)
  if (cell.holder === null) return { kind: 'free' }
  const { id, attempt, owner, token, expiresAt } = cell.holder
  return { name, id, attempt, owner, token: BigInt(token), expiresIn: expiresAt - now.ms }
}

function expire(cell: VoteCell, { ms }: Instant): void {
  if (cell.holder !== null && cell.holder.expiresAt <= ms) cell.holder = null
}

/** What one client has given up another one may have been granted: two lock servers are asked for one claim. */
function isOfOneClient(one: { readonly attempt: number }, other: { readonly attempt: number }): boolean {
  return Math.floor(one.attempt / ATTEMPTS) === Math.floor(other.attempt / ATTEMPTS)
}

function isMine(holder: CellHolder, { id, attempt }: VoteRef): boolean {
  return holder.id === id && holder.attempt === attempt
}

/** Only the first one is told of a release: with all of them at once, the votes would split. */
function tellFirst(
  cell: VoteCell,
  name: string,
  reachable: (session: string) => boolean,
  notices: CellNotice[],
): void {
  for (const session of cell.interested) {
    cell.interested.delete(session)
    if (!reachable(session)) continue
    notices.push({ session, event: { kind: 'freed', name } })
    return
  }
}

function beInterested(
  cell: VoteCell,
  holder: CellHolder,
  { id, name }: ClaimRef,
  notices: CellNotice[],
): void {
  const first = cell.interested.size === 0
  cell.interested.add(sessionOf(id))
  if (!first) return
  notices.push({ session: sessionOf(holder.id), event: { kind: 'contended', name, id: holder.id } })
}
