import type { Busy, ClaimAnswer, ClaimRequest, Held, Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { secondsFor } from './capabilities.ts'
import { change, look, mint, readLook, take, ClaimKeys } from './commands.ts'
import type { Look } from './commands.ts'
import type { StoreContext, Exchange } from './exchange.ts'
import type { Grant } from './grants.ts'
import { isOurs, isTombstone, tombstoneOf } from './keys.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

/**
 * Takes a name in one round trip if nobody has it: create, reserve tokens, look. The tokens are reserved after the item is
 * ours and it is looked at after that, so that whoever took it from us in between has the larger token or is seen.
 * Somebody who finds it taken has reserved tokens in vain; that is what tells the holder that others want it.
 */
export function claim(
  context: StoreContext,
  exchange: Exchange,
  request: ClaimRequest,
): Promise<ClaimAnswer> {
  const claimKeys = new ClaimKeys(context.keys, request.name, request.id)
  const seconds = secondsFor(request.ttl)
  const commands = take(exchange.connection, claimKeys, seconds, request.tokens)
  return exchange.sendTimed<ClaimAnswer>(commands, 3, ([, minted, seen]) => {
    const found = readLook(seen as Reply)
    const { value } = found
    reserved(context, request, claimKeys, minted as Reply)
    const contended = context.rivals.seen(request.name, (minted as Reply).number, request.tokens)
    if (value === claimKeys.nonce && lasts(found, seconds)) {
      return granted(context, exchange, request, {
        claimKeys,
        seconds,
        found,
        minted: minted as Reply,
        contended,
      })
    }
    if (value === undefined) return { kind: 'busy' }
    if (!isOurs(value)) return foreign()
    // Ours from before, to be renewed, or what somebody left who withdrew. His own late copies are not let in.
    const free = isTombstone(value) && value !== tombstoneOf(claimKeys.nonce)
    return value === claimKeys.nonce || free
      ? takeOver(context, exchange, request, { claimKeys, seconds, found, contended })
      : busy(found)
  })
}

interface Place {
  readonly claimKeys: ClaimKeys
  readonly seconds: number
  readonly found: Look
  /** Others asked for it since we last did. */
  readonly contended: boolean
}

/** For one reader's sake one would do; a few more cost nothing where there is none. */
const SECOND_TRIES = 4

function takeOver(
  context: StoreContext,
  exchange: Exchange,
  request: ClaimRequest,
  place: Place & Pick<Won, 'tombstone'> & { readonly again?: number },
): Promise<ClaimAnswer> {
  const { claimKeys, seconds, found, contended, again = SECOND_TRIES } = place
  const { value: from = '', cas, secondsLeft } = found
  const changed = change(exchange.connection, claimKeys, { from, to: claimKeys.nonce, cas, seconds })
  const commands = `${changed}\r\n${mint(claimKeys, request.tokens, seconds)}\r\n${look(claimKeys)}`
  return exchange.sendTimed<ClaimAnswer>(commands, 3, ([, minted, seen]) => {
    const now = readLook(seen as Reply)
    reserved(context, request, claimKeys, minted as Reply)
    context.rivals.seen(request.name, (minted as Reply).number, request.tokens)
    if (now.value !== claimKeys.nonce) return busy(now)
    const tombstone = isTombstone(from)
      ? { value: from, until: performance.now() + secondsLeft * 1000 }
      : place.tombstone
    // Somebody read the item meanwhile, or the server itself had it in use, to move it in its lists: it was replaced, and the new one kept
    // the time of the old. That may be too short; or, a tombstone's, so long that nobody could have the lock for a minute if we
    // died now. The new item is not in use, so that a second attempt sets it, unless the reader goes on and on.
    const late = !lasts(now, seconds)
    if ((late || (now.secondsLeft > seconds && tombstone !== undefined)) && again > 0)
      return takeOver(context, exchange, request, {
        claimKeys,
        seconds,
        found: now,
        contended,
        tombstone,
        again: again - 1,
      })
    if (late) return disturbed()
    return granted(context, exchange, request, {
      claimKeys,
      seconds,
      found: now,
      minted: minted as Reply,
      contended,
      tombstone,
    })
  })
}

interface Won extends Place {
  readonly minted: Reply
  readonly tombstone?: { readonly value: string; readonly until: number } | undefined
}

function granted(
  context: StoreContext,
  { connection, deadline }: Exchange,
  request: ClaimRequest,
  won: Won,
): Held {
  const { claimKeys, seconds, found } = won
  const { id, owner } = request
  const known = context.grants.get(id, claimKeys.lock)
  // A claim that is asked for again keeps the tokens that it was given, if it was told of them. Not those of an item that may have
  // run out, or got lost, while somebody else held the lock with larger ones.
  const kept = known?.reserved === undefined ? undefined : known
  const first = firstOf(won.minted, request.tokens)
  const token = kept?.token ?? first
  const count = kept?.count ?? request.tokens
  const grant: Grant = {
    id,
    claimKeys,
    owner,
    token,
    count,
    reserved: first + BigInt(request.tokens - 1),
    cas: found.cas,
    connection,
    seconds,
    endsAt: deadline + seconds * 1000,
    tombstone: won.tombstone ?? known?.tombstone,
    described: kept?.described ?? false,
    over: false,
  }
  context.grants.add(grant)
  context.descriptions.later(grant)
  return { kind: 'held', token, count, contended: won.contended }
}

/** Tokens were reserved for a claim once more: notes whether anybody else did so since the last time. */
function reserved(
  { grants }: StoreContext,
  { id, tokens }: ClaimRequest,
  { lock }: ClaimKeys,
  minted: Reply,
): void {
  const known = grants.get(id, lock)
  if (known?.reserved === undefined) return
  const first = firstOf(minted, tokens)
  known.reserved = first === known.reserved + 1n ? first + BigInt(tokens - 1) : undefined
}

/** The first of the tokens that were reserved; the reply tells the last. */
function firstOf(minted: Reply, count: number): bigint {
  const last = minted.number
  return Number.isNaN(last) ? BigInt(minted.value ?? 0) - BigInt(count - 1) : BigInt(last - count + 1)
}

/** Whether the item has the ttl that it was just given: one second may have passed since. */
export function lasts({ secondsLeft }: Look, seconds: number): boolean {
  return secondsLeft >= seconds - 1
}

export function disturbed(): Unknown {
  return unknown(
    new Error('somebody read the lock’s item while it was renewed, so that its time was not set'),
  )
}

function busy({ secondsLeft, cas }: Look): Busy {
  // The whole of it would name the holder's item.
  const mark = cas.slice(-4)
  return secondsLeft > 0 ? { kind: 'busy', retryAfter: secondsLeft * 1000, mark } : { kind: 'busy', mark }
}

function foreign(): Unknown {
  return unknownForGood(
    new Error('another program keeps something at the key of this lock. Give the store a prefix of its own.'),
  )
}
