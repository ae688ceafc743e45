import type { ClaimRef } from './contract.ts'

/** Live: a writer's claim weighs less once it is a reader's. */
export interface LeasedClaim extends ClaimRef {
  readonly weight: number
}

/**
 * Where a lease tells the claim behind it to a store that guards a transaction with it. A symbol, because the claim's id
 * is a secret that has no place among what people see; one for all copies of this package in a process.
 */
const CLAIM = Symbol.for('holdfast.claim')

/** Has all leases of a class tell it. */
export function tellClaim<L extends object>(
  leases: { readonly prototype: L },
  claimOf: (lease: L) => LeasedClaim | undefined,
): void {
  Object.defineProperty(leases.prototype, CLAIM, {
    get(this: L) {
      return claimOf(this)
    },
  })
}

/** The claim behind a lease; undefined for one that is not of this process's making. */
export function claimBehind(lease: object): LeasedClaim | undefined {
  return (lease as { readonly [CLAIM]?: LeasedClaim })[CLAIM]
}
