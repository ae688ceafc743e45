import type { LockInfo, PublicClaim } from '../locks/holdfast.ts'
import { ALL } from '../core/contract.ts'
import type { Store } from '../core/contract.ts'
import { showDuration } from './duration.ts'
import type { Cell } from './table.ts'

/** How claims are shown. */

const YEAR_2020_MS = 1_577_836_800_000
const DAY_MS = 86_400_000

export type StoreKind = Pick<Store, 'kind'>

/**
 * Their tokens may look like times and are none: memcached's go on from when the name was first used, and ZooKeeper's, made of the
 * number of a transaction, come to those of today in the sixth epoch of an ensemble.
 */
const WITHOUT_TIME: ReadonlySet<string> = new Set(['memcached', 'zookeeper'])

/**
 * The moment of a grant by the store's clock, in milliseconds of Unix time. Tokens of other stores follow that clock in microseconds
 * wherever there is one, so a token that looks like a time is one; or they count from 1.
 */
export function timeOf(token: bigint, { kind }: StoreKind): number | undefined {
  if (WITHOUT_TIME.has(kind)) return undefined
  const ms = Number(token) / 1000
  return ms > YEAR_2020_MS && ms < Date.now() + DAY_MS ? ms : undefined
}

/** How long ago that was. */
function ageOf(token: bigint | undefined, store: StoreKind): number | undefined {
  const granted = token === undefined ? undefined : timeOf(token, store)
  return granted === undefined ? undefined : Math.max(0, Math.round(Date.now() - granted))
}

export function showAge(token: bigint | undefined, store: StoreKind): string {
  const age = ageOf(token, store)
  return age === undefined ? '' : showDuration(age)
}

/** What kind of lock a capacity means. */
export function kindOf({ capacity, holders, waiters }: LockInfo): string {
  // A store may remember what a name was used for last.
  if (capacity === 0 || holders.length + waiters.length === 0) return 'free'
  if (capacity === ALL) return 'read-write'
  return capacity === 1 ? 'mutex' : `semaphore of ${capacity}`
}

/** What a claim takes of it. */
function shareOf({ weight }: PublicClaim, { capacity }: Pick<LockInfo, 'capacity'>): string {
  if (capacity === ALL) return weight === ALL ? 'write' : 'read'
  return capacity === 1 ? '' : `${weight} of ${capacity}`
}

/** One row a claim: state, owner, share, token, age, when the store forgets it. */
export function claimRows(info: LockInfo, store: StoreKind): readonly (readonly Cell[])[] {
  const row = (state: Cell, claim: PublicClaim): readonly Cell[] => [
    state,
    claim.owner,
    shareOf(claim, info),
    claim.token === undefined ? '' : String(claim.token),
    showAge(claim.token, store),
    showDuration(Math.max(0, claim.expiresIn)),
  ]
  return [
    ...info.holders.map((claim) => row({ text: 'holds', colour: 'green' }, claim)),
    ...info.waiters.map((claim, index) => row({ text: `waits ${index + 1}.`, colour: 'yellow' }, claim)),
  ]
}

/** As JSON: the same facts, times in milliseconds. */
function claimJson(claim: PublicClaim, store: StoreKind): object {
  const { owner, weight, token, expiresIn } = claim
  const age = ageOf(token, store)
  return {
    owner,
    weight,
    ...(token === undefined ? {} : { token: String(token) }),
    ...(age === undefined ? {} : { age }),
    expiresIn: Math.max(0, Math.round(expiresIn)),
  }
}

export function lockJson(info: LockInfo, store: StoreKind): object {
  const { name, capacity, holders, waiters } = info
  return {
    name,
    kind: kindOf(info),
    capacity,
    holders: holders.map((claim) => claimJson(claim, store)),
    waiters: waiters.map((claim) => claimJson(claim, store)),
  }
}
