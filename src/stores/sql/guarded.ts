import { InvalidArgumentError, LockLostError } from '../../core/errors.ts'
import { claimBehind } from '../../core/leased-claim.ts'
import type { LeasedClaim } from '../../core/leased-claim.ts'
import { load } from './row.ts'
import type { Row } from './row.ts'

/** What a guard has to know of a lease: any that `acquire` gave, also one on several names. */
export interface GuardedLease {
  readonly name: string
  readonly token: bigint
  readonly held: boolean
  assertHeld(): void
}

interface Guarded {
  readonly lease: GuardedLease
  readonly claim: LeasedClaim | undefined
  /** When the guard began. */
  readonly weight: number
}

/**
 * Two questions, neither of which can stand for the other. When the transaction begins: does the claim stand at the
 * server? From then on the server lets nobody take it away. Before the commit: is the lease still its owner's? It may
 * have been released, or have reached its `maxHold`, and the claim, which stands, be another task's by now.
 */
export class Guard {
  readonly names: readonly string[]
  private readonly guarded: readonly Guarded[]
  private readonly store: string

  constructor(lease: GuardedLease, store: string) {
    this.store = store
    this.guarded = partsOf(lease).map((part) => {
      const claim = claimBehind(part)
      return { lease: part, claim, weight: claim?.weight ?? 0 }
    })
    this.names = this.guarded.map(({ lease: { name } }) => name).sort()
  }

  /** The claims' ids, as far as they are known here. */
  get ids(): string[] {
    return this.guarded.flatMap(({ claim }) => (claim === undefined ? [] : [claim.id]))
  }

  /** Those that the claims have at the database, behind a lock server others than here. */
  idsIn(rows: readonly Row[]): string[] {
    return this.guarded.flatMap((one) => {
      const row = rows.find(({ name }) => name === one.lease.name)
      return (row && holderOf(row, one)) ?? []
    })
  }

  /** Whether a picture of the rows, which may be old, is from after the leases were granted. */
  areSeen(rows: readonly Row[]): boolean {
    return this.guarded.every((one) => {
      const row = rows.find(({ name }) => name === one.lease.name)
      // Whether they had run out then says nothing: they are renewed.
      return row !== undefined && holderOf({ ...row, now: 0 }, one) !== undefined
    })
  }

  /** Throws unless the rows, which nobody else can take claims from any more, say that all the claims stand. */
  begin(rows: readonly Row[]): void {
    for (const one of this.guarded) {
      const row = rows.find(({ name }) => name === one.lease.name)
      if (row === undefined || holderOf(row, one) === undefined)
        throw this.lost(one, 'it is not held any more')
    }
    this.end()
  }

  /** To be called right before the commit. Asks the lease itself, which is right also after the event loop was blocked. */
  end(): void {
    for (const one of this.guarded) {
      const { lease, claim, weight } = one
      lease.assertHeld()
      if (!lease.held) throw this.lost(one, 'it was released')
      if (claim !== undefined && claim.weight !== weight) throw this.lost(one, 'it is a reader’s by now')
    }
  }

  private lost({ lease: { name, token } }: Guarded, why: string): LockLostError {
    return new LockLostError(
      `The lease on "${name}" cannot guard a transaction: ${why}. Nothing was committed. Take the lock again and start over.`,
      { lock: name, store: this.store, token },
    )
  }
}

/**
 * The id of the holder that the lease stands for. By the claim's id, which a lease keeps whatever other tokens its claim is given meanwhile; or, where a lock server
 * stands in between and has ids of its own, by the token.
 */
function holderOf(row: Row, { lease: { token }, claim }: Guarded): string | undefined {
  for (const holder of load(row, 1).state.holders.values()) {
    if (holder.expiresAt * 1000 <= row.now) continue
    const first = BigInt(holder.token)
    if (holder.id === claim?.id || (first <= token && token < first + BigInt(holder.count))) return holder.id
  }
  return undefined
}

/** The leases of a set, or the lease itself. */
function partsOf(lease: GuardedLease): readonly GuardedLease[] {
  if ('leases' in lease && Array.isArray(lease.leases)) {
    return (lease.leases as readonly GuardedLease[]).flatMap(partsOf)
  }
  const { name, token, held } = lease
  if (typeof name === 'string' && typeof token === 'bigint' && typeof held === 'boolean') return [lease]
  throw new InvalidArgumentError(
    'lease must be one that acquire gave: its name and token alone do not tell its end',
    {
      argument: 'lease',
    },
  )
}
