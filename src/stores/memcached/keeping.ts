import type { RenewAnswer, RenewRequest } from '../../core/contract.ts'
import { secondsFor } from './capabilities.ts'
import { disturbed, lasts } from './claiming.ts'
import { change, glance, keepDescription, lastMinted, look, mint, readLook, wireFor } from './commands.ts'
import type { Wire } from './commands.ts'
import type { Desk, Exchange } from './exchange.ts'
import { isUnknown, unknown } from './failure.ts'
import type { Grant } from './grants.ts'
import { codeOf, flagOf } from './protocol.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

const LOST: RenewAnswer = { kind: 'lost' }

/** Renews a claim if its item is still its own. */
export async function renew(desk: Desk, exchange: Exchange, request: RenewRequest): Promise<RenewAnswer> {
  const grant = desk.grants.get(request.id)
  const wire = grant?.wire ?? wireFor(desk.keys, request.name, request.id)
  const cas = knownCas(exchange, wire, grant)
  const first = cas === undefined ? 'changed' : await attempt(desk, exchange, request, { wire, cas, grant })
  const answer = first === 'changed' ? await lookAndAttempt(desk, exchange, request, { wire, grant }) : first
  if (answer.kind === 'lost') desk.grants.delete(request.id)
  return answer
}

/**
 * The CAS value with which the item can be changed at once. Without one of our own it is only good on the connection on
 * which it was read: a restarted server counts from one again, and the same value may be another holder's item.
 */
export function knownCas({ link }: Exchange, { nonce }: Wire, grant: Grant | undefined): string | undefined {
  if (link.ownCas) return nonce
  return grant?.link === link ? grant.cas : undefined
}

interface Hold {
  readonly wire: Wire
  readonly grant: Grant | undefined
  readonly cas: string
}

async function lookAndAttempt(
  desk: Desk,
  exchange: Exchange,
  request: RenewRequest,
  { wire, grant }: Omit<Hold, 'cas'>,
): Promise<RenewAnswer> {
  const replies = await exchange.send([look(wire)])
  if (isUnknown(replies)) return replies
  const { value, cas } = readLook(replies[0] as Reply)
  if (value !== wire.nonce) return LOST
  const answer = await attempt(desk, exchange, request, { wire, cas, grant })
  return answer === 'changed' ? unknown(new Error('the lock’s item changed while it was renewed')) : answer
}

/** `changed`: the item is there, and has another CAS value. */
async function attempt(
  desk: Desk,
  exchange: Exchange,
  request: RenewRequest,
  hold: Hold,
): Promise<RenewAnswer | 'changed'> {
  const { wire, cas, grant } = hold
  const { ttl, tokens } = request
  const { nonce } = wire
  const seconds = secondsFor(ttl)
  const replies = await exchange.sendTimed([
    change(exchange.link, wire, { from: nonce, to: nonce, cas, seconds }),
    keepDescription(wire, seconds),
    tokens > 0 ? mint(wire, tokens, seconds) : lastMinted(wire),
    glance(wire),
  ])
  if (isUnknown(replies)) return replies
  const [changed, description, minted, seen] = replies as [Reply, Reply, Reply, Reply]
  if (codeOf(changed) === 'NF') return LOST
  if (codeOf(changed) !== 'HD') return 'changed'
  const found = readLook(seen)
  if (!found.found) return LOST
  const last = BigInt(minted.value ?? 0)
  const contended = othersMinted(grant, last, tokens)
  if (grant !== undefined) {
    Object.assign(grant, {
      cas: found.cas,
      link: exchange.link,
      seconds,
      endsAt: performance.now() + seconds * 1000,
    })
    grant.described &&= codeOf(description) !== 'EN'
    if (tokens > 0) Object.assign(grant, { token: last - BigInt(tokens) + 1n, count: tokens })
  }
  // The same CAS value proves that it is still the item that was changed.
  if (found.cas !== flagOf(changed, 'c') || !lasts(found, seconds)) return disturbed()
  if (tokens === 0) return { kind: 'renewed', contended }
  return { kind: 'held', token: last - BigInt(tokens) + 1n, count: tokens, contended }
}

/** Somebody who asks for the name reserves tokens: if the counter has moved since our last ones, somebody wants it. */
function othersMinted(grant: Grant | undefined, last: bigint, tokens: number): boolean {
  if (grant === undefined) return false
  return last - BigInt(tokens) > grant.token + BigInt(grant.count) - 1n
}
