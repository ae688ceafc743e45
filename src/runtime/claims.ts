import type { Claim } from './claim.ts'

/**
 * The claims of a lane, in their order. Most lanes have one, and a list is the smallest that there is; a semaphore may have a permit for
 * each of ten thousand connections, of which none may cost a walk along all others.
 */
export type Claims = readonly Claim[] | ManyClaims

const FEW = 16
/** Entries that are over are left in the stack until they are so many more than the others. */
const SLACK = 64

export const NO_CLAIMS: Claims = []

/** It will serve the line when it is granted. */
const isComing = ({ state, only }: Claim): boolean => state !== 'held' && state !== 'gone' && only === null

class ManyClaims implements Iterable<Claim> {
  readonly byId: Map<string, Claim>
  coming: number
  /** Those on their way, the latest last; also some that have come. */
  private stack: Claim[]

  constructor(claims: Iterable<Claim>) {
    const all = [...claims]
    this.byId = new Map(all.map((claim) => [claim.id, claim]))
    this.stack = all.filter(isComing)
    this.coming = this.stack.length
  }

  [Symbol.iterator](): Iterator<Claim> {
    return this.byId.values()
  }

  add(claim: Claim): void {
    this.byId.set(claim.id, claim)
    if (!isComing(claim)) return
    this.coming++
    this.stack.push(claim)
    if (this.stack.length > 2 * this.coming + SLACK) this.stack = this.stack.filter(isComing)
  }

  lastComing(): Claim | undefined {
    let last = this.stack.at(-1)
    while (last !== undefined && !isComing(last)) {
      this.stack.pop()
      last = this.stack.at(-1)
    }
    return last
  }
}

const isFew = (claims: Claims): claims is readonly Claim[] => Array.isArray(claims)

export const sizeOf = (claims: Claims): number => (isFew(claims) ? claims.length : claims.byId.size)

/** A list of its own: whoever walks along it makes claims come and go. */
export const asTheyAre = (claims: Claims): readonly Claim[] => (isFew(claims) ? claims : [...claims])

/** With one more, as the last. */
export function withClaim(claims: Claims, claim: Claim): Claims {
  if (isFew(claims)) {
    // A literal is exactly as long as it must be; an array that grows keeps room for sixteen more.
    if (claims.length < FEW) return claims.length === 0 ? [claim] : claims.concat(claim)
    return new ManyClaims([...claims, claim])
  }
  claims.add(claim)
  return claims
}

/** With one more, before all others. */
export function withFirst(claims: Claims, claim: Claim): Claims {
  return isFew(claims) ? [claim, ...claims] : new ManyClaims([claim, ...claims])
}

export function without(claims: Claims, claim: Claim): Claims {
  if (isFew(claims)) {
    return claims.length === 1 && claims[0] === claim ? NO_CLAIMS : claims.filter((other) => other !== claim)
  }
  claims.byId.delete(claim.id)
  return claims.byId.size === 0 ? NO_CLAIMS : claims
}

export function claimOf(claims: Claims, id: string): Claim | undefined {
  return isFew(claims) ? claims.find((claim) => claim.id === id) : claims.byId.get(id)
}

/** How many are on their way. */
export function comingIn(claims: Claims): number {
  if (!isFew(claims)) return claims.coming
  let count = 0
  for (const claim of claims) if (isComing(claim)) count++
  return count
}

/** To be called before it is held or gone. */
export function noLongerComing(claims: Claims, claim: Claim): void {
  if (!isFew(claims) && isComing(claim)) claims.coming--
}

/** The last one that is on its way. */
export function lastComing(claims: Claims): Claim | undefined {
  return isFew(claims) ? claims.findLast(isComing) : claims.lastComing()
}
