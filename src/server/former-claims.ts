import { pickUpTime } from '../core/validity.ts'
import type { ClaimRegistry } from './claim-registry.ts'
import type { Caller } from './caller.ts'
import type { EmbeddedStore } from './embedded/store.ts'
import { ANYBODY, Principal } from './rights.ts'
import type { Tokens } from './tokens.ts'

/**
 * Puts the claims of the former run into the book, each under the name of its principal: limits count them, and nobody else
 * can use their sessions. A principal that is not in the tokens file any more keeps what it has until that ends.
 * Returns how many there are.
 */
export function bookFormer(registry: ClaimRegistry, own: EmbeddedStore, tokens: Tokens | null): number {
  const { former } = own
  own.former = null
  if (former === null) return 0
  const callers = new Map<string, Caller>()
  const callerOf = (who: string): Caller => {
    const known = callers.get(who)
    if (known !== undefined) return known
    const principal = tokens === null && who === ANYBODY.name ? ANYBODY : tokens?.named(who)
    const caller = { principal: principal ?? new Principal(who, [], []), remote: '-', request: '-' }
    callers.set(who, caller)
    return caller
  }
  let count = 0
  for (const [name, { capacity, holders, waiters }] of former.states) {
    for (const { id, owner, weight, token, expiresAt: until } of holders.values()) {
      const maker = former.makerOf(id)
      count++
      if (maker === undefined) continue
      const held = { state: 'held', until, pickUp: 0, ttl: maker.ttl, token: BigInt(token) } as const
      registry.takeUp(callerOf(maker.who), { name, id, owner, weight, capacity, ...held })
    }
    for (const { id, owner, weight, ttl, patience, keptUntil: until } of waiters.values()) {
      const maker = former.makerOf(id)
      count++
      if (maker === undefined) continue
      const pickUp = pickUpTime({ ttl, patience })
      const waiting = { state: 'waiting', until, pickUp, ttl, token: 0n } as const
      registry.takeUp(callerOf(maker.who), { name, id, owner, weight, capacity, ...waiting })
    }
  }
  return count
}
