import type { VoteRef } from '../../core/contract.ts'

// Taken once: a user's fake timers must not make a store forget.
const { performance } = globalThis

/** What this client was granted by a majority. */
export interface Grant extends VoteRef {
  readonly owner: string
  token: bigint
  count: number
  /** When every store has forgotten it, unless it is renewed. */
  endsAt: number
}

const SWEEP_AT = 1000

/** The grants of this client, by claim. Attempt and token are in here alone: whoever does not have them cannot renew. */
export class Grants {
  private readonly byId = new Map<string, Grant>()
  private sweepAt = SWEEP_AT

  get(id: string): Grant | undefined {
    return this.byId.get(id)
  }

  add(grant: Grant): void {
    if (this.byId.size >= this.sweepAt) this.sweep()
    this.byId.set(grant.id, grant)
  }

  delete(id: string): void {
    this.byId.delete(id)
  }

  /** Claims that were left to run out. */
  private sweep(): void {
    const now = performance.now()
    for (const [id, { endsAt }] of this.byId) if (endsAt < now) this.byId.delete(id)
    this.sweepAt = Math.max(SWEEP_AT, this.byId.size * 2)
  }
}

export function endOf(ttl: number): number {
  return performance.now() + 2 * ttl
}
