import type { ClaimInfo, NameInfo } from '../core/contract.ts'

/** Holders, and waiters, of one name that are shown; and characters of all of them together. */
const SHOWN = { claims: 10_000, characters: 8_000_000 }
/** Of a claim's numbers, and the names of its fields. */
const CLAIM_CHARACTERS = 120

/** The first of them: a name may have two hundred thousand readers. Its clients refuse to read lines without an end. */
export function shownOf({ name, capacity, holders, waiters }: NameInfo): NameInfo {
  let left = SHOWN.characters
  const first = (claims: readonly ClaimInfo[]): readonly ClaimInfo[] => {
    const some = claims.length > SHOWN.claims ? claims.slice(0, SHOWN.claims) : claims
    const end = some.findIndex(({ id, owner }) => (left -= id.length + owner.length + CLAIM_CHARACTERS) < 0)
    return end < 0 ? some : some.slice(0, end)
  }
  return { name, capacity, holders: first(holders), waiters: first(waiters) }
}
