import type { RenewAnswer, RenewRequest } from '../../core/contract.ts'
import { secondsFor } from './capabilities.ts'
import { disturbed, lasts } from './claim.ts'
import { change, glance, keepDescription, lastMinted, look, mint, readLook, ClaimKeys } from './commands.ts'
import type { StoreContext, Exchange } from './exchange.ts'
import { OutOfMemory } from './failure.ts'
import type { Grant } from './grants.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

const LOST: RenewAnswer = { kind: 'lost' }

/** Renews a claim if its item is still its own. */
export async function renew(
  context: StoreContext,
  exchange: Exchange,
  request: RenewRequest,
): Promise<RenewAnswer> {
  const grant = context.grants.get(request.id, context.keys.places(request.name).lock)
  const claimKeys = grant?.claimKeys ?? new ClaimKeys(context.keys, request.name, request.id)
  const cas = knownCas(exchange, claimKeys, grant)
  const first = cas === undefined ? CHANGED : await attempt(exchange, request, { claimKeys, cas, grant })
  const answer =
    first.kind === 'changed' || wasFull(first)
      ? await lookAndAttempt(exchange, request, claimKeys, grant)
      : first
  if (answer.kind === 'lost') context.grants.delete(request.id)
  else if (answer.kind !== 'unknown' && grant !== undefined) context.descriptions.later(grant)
  return answer
}

/**
 * The CAS value with which the item can be changed at once. Without one of our own it is only good on the connection on
 * which it was read: a restarted server counts from one again, and the same value may be another holder's item.
 */
export function knownCas(
  { connection }: Exchange<unknown>,
  { nonce }: ClaimKeys,
  grant: Grant | undefined,
): string | undefined {
  if (connection.ownCas) return nonce
  return grant?.connection === connection ? grant.cas : undefined
}

interface Hold {
  readonly claimKeys: ClaimKeys
  readonly cas: string
  readonly grant: Grant | undefined
}

/**
 * A full server has no room to replace an item that a reader has in use; a round trip later the reader is gone, and there
 * is nothing to replace.
 */
function wasFull(answer: RenewAnswer): boolean {
  return answer.kind === 'unknown' && answer.cause instanceof OutOfMemory
}

/** The item is there, but has another CAS value, or not the time that it should have. */
const CHANGED = { kind: 'changed' } as const

function lookAndAttempt(
  exchange: Exchange,
  request: RenewRequest,
  claimKeys: ClaimKeys,
  grant: Grant | undefined,
): Promise<RenewAnswer> {
  return exchange.send<RenewAnswer>(look(claimKeys), 1, async ([seen]) => {
    const { value, cas } = readLook(seen as Reply)
    if (value !== claimKeys.nonce) return LOST
    const answer = await attempt(exchange, request, { claimKeys, cas, grant })
    return answer.kind === 'changed' ? disturbed() : answer
  })
}

function attempt(
  exchange: Exchange,
  request: RenewRequest,
  hold: Hold,
): Promise<RenewAnswer | typeof CHANGED> {
  const { claimKeys, cas, grant } = hold
  const { ttl, tokens } = request
  const { nonce } = claimKeys
  const seconds = secondsFor(ttl)
  const commands = [
    change(exchange.connection, claimKeys, { from: nonce, to: nonce, cas, seconds }),
    keepDescription(claimKeys, seconds),
    tokens > 0 ? mint(claimKeys, tokens, seconds) : lastMinted(claimKeys),
    glance(claimKeys),
  ]
  return exchange.sendTimed<RenewAnswer | typeof CHANGED>(commands.join('\r\n'), 4, (replies) => {
    const [changed, description, minted, seen] = replies as [Reply, Reply, Reply, Reply]
    if (changed.code === 'NF') return LOST
    if (changed.code !== 'HD') return CHANGED
    const found = readLook(seen)
    if (!found.found) return LOST
    const last = BigInt(minted.value ?? 0)
    const token = last - BigInt(tokens) + 1n
    const contended = grant !== undefined && token > grant.token + BigInt(grant.count)
    if (grant !== undefined) {
      const endsAt = performance.now() + seconds * 1000
      Object.assign(grant, { cas: found.cas, connection: exchange.connection, seconds, endsAt })
      grant.described &&= description.code !== 'EN'
      if (tokens > 0) Object.assign(grant, { token, count: tokens, reserved: last })
    }
    // The same CAS value proves that it is still the item that was changed; the time that is left, that it was not replaced.
    if (found.cas !== changed.flag('c') || !lasts(found, seconds)) return CHANGED
    return tokens > 0 ? { kind: 'held', token, count: tokens, contended } : { kind: 'renewed', contended }
  })
}
