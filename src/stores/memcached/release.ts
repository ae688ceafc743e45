import { WITHDRAWN_MS } from '../../core/claim-queue.ts'
import type { ClaimRef, MaybePromise, ReleaseAnswer, ReleaseResult, Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { bury, change, look, readLook, remove, removeDescription, ClaimKeys } from './commands.ts'
import type { Look } from './commands.ts'
import type { StoreContext, Exchange } from './exchange.ts'
import type { Grant } from './grants.ts'
import { knownCas } from './renew.ts'
import { isOurs, isTombstone, tombstoneOf } from './keys.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

const RELEASED: ReleaseAnswer = { kind: 'released' }
const NOT_HELD: ReleaseAnswer = { kind: 'not-held' }
const WAS_RELEASED: ReleaseResult = { released: RELEASED }
const WAS_NOT_HELD: ReleaseResult = { released: NOT_HELD }
const WITHDRAWN_S = WITHDRAWN_MS / 1000

/** Removes a claim's item if it is still its own, in one round trip as a rule. */
export function release(
  context: StoreContext,
  exchange: Exchange<ReleaseResult>,
  { name, id }: ClaimRef,
): Promise<ReleaseResult> {
  const grant = leaving(context, name, id)
  const claimKeys = grant?.claimKeys ?? new ClaimKeys(context.keys, name, id)
  const cas = knownCas(exchange, claimKeys, grant)
  const leave: Leave = { context, exchange, id, claimKeys, grant }
  return cas === undefined ? lookAndFree(leave) : free(leave, cas, lookAndFree)
}

/** From now on it is not described any more. */
function leaving({ grants, keys }: StoreContext, name: string, id: string): Grant | undefined {
  const grant = grants.get(id, keys.places(name).lock)
  if (grant !== undefined) grant.over = true
  return grant
}

interface Leave {
  readonly context: StoreContext
  readonly exchange: Exchange<ReleaseResult>
  readonly id: string
  readonly claimKeys: ClaimKeys
  readonly grant: Grant | undefined
}

function lookAndFree(leave: Leave): Promise<ReleaseResult> {
  const { context, exchange, id, claimKeys } = leave
  return exchange.send<ReleaseResult>(look(claimKeys), 1, ([seen]) => {
    const { value, cas } = readLook(seen as Reply)
    if (value === claimKeys.nonce) return free(leave, cas, () => ({ released: changed('released') }))
    context.grants.delete(id)
    return WAS_NOT_HELD
  })
}

/** `otherwise`: the item is there, and has another CAS value. */
function free(
  leave: Leave,
  cas: string,
  otherwise: (leave: Leave) => MaybePromise<ReleaseResult>,
): Promise<ReleaseResult> {
  const { context, exchange, id, claimKeys, grant } = leave
  const command = restoring(exchange, claimKeys, cas, grant) ?? remove(claimKeys, cas)
  // Whoever did not write the description here cannot know whether there is one.
  const described = grant?.described ?? true
  const commands = described ? `${removeDescription(claimKeys)}\r\n${command}` : command
  return exchange.send<ReleaseResult>(commands, described ? 2 : 1, (replies) => {
    const { code } = replies[described ? 1 : 0] as Reply
    if (code !== 'HD' && code !== 'NF') return otherwise(leave)
    context.grants.delete(id)
    return code === 'HD' ? WAS_RELEASED : WAS_NOT_HELD
  })
}

function changed(what: string): Unknown {
  return unknown(new Error(`the lock’s item changed while it was ${what}`))
}

/** Who took the place of a withdrawn claim leaves its tombstone there again, for the time that it still has. */
function restoring(
  { connection }: Exchange<ReleaseResult>,
  claimKeys: ClaimKeys,
  cas: string,
  grant: Grant | undefined,
): string | undefined {
  if (grant?.tombstone === undefined) return undefined
  const { value, until } = grant.tombstone
  const seconds = Math.ceil((until - performance.now()) / 1000)
  return seconds > 0
    ? change(connection, claimKeys, { from: claimKeys.nonce, to: value, cas, seconds })
    : undefined
}

/**
 * Removes a claim, and leaves a tombstone in its place: while there is any item, a late copy of the claim can create none.
 * Others take the tombstone's place in one more round trip, and put it back. What is not covered: somebody else who holds
 * the lock at this moment has a plain item, and after its release a copy that is even later finds nothing in its way.
 * It then keeps the lock from everybody until its ttl ends; nobody believes to have it.
 */
export function withdraw(
  context: StoreContext,
  exchange: Exchange,
  { name, id }: ClaimRef,
): Promise<ReleaseAnswer> {
  const claimKeys = leaving(context, name, id)?.claimKeys ?? new ClaimKeys(context.keys, name, id)
  const commands = [removeDescription(claimKeys), look(claimKeys), bury(claimKeys, WITHDRAWN_S)]
  return exchange.send<ReleaseAnswer>(commands.join('\r\n'), 3, async ([, seen, buried]) => {
    const found = readLook(seen as Reply)
    const answer = await (found.found ? replace(exchange, claimKeys, found) : isDone(buried, NOT_HELD))
    if (answer.kind !== 'unknown') context.grants.delete(id)
    return answer
  })
}

function replace(
  exchange: Exchange,
  claimKeys: ClaimKeys,
  { value, cas }: Look,
): MaybePromise<ReleaseAnswer> {
  const tombstone = tombstoneOf(claimKeys.nonce)
  const mine = value === claimKeys.nonce
  // Another's tombstone may end too soon for us.
  const another = isOurs(value) && isTombstone(value) && value !== tombstone
  if (value === undefined || !(mine || another)) return NOT_HELD
  const command = change(exchange.connection, claimKeys, {
    from: value,
    to: tombstone,
    cas,
    seconds: WITHDRAWN_S,
  })
  return exchange.send<ReleaseAnswer>(command, 1, ([reply]) => isDone(reply, mine ? RELEASED : NOT_HELD))
}

/** Whoever changed the item meanwhile may have been the claim itself, which was still under way. */
function isDone(reply: Reply | undefined, answer: ReleaseAnswer): ReleaseAnswer {
  return reply?.code === 'HD' ? answer : changed('withdrawn')
}
