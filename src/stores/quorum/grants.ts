import type { VoteRef } from '../../core/contract.ts'
import type { QuorumClock } from './clock.ts'

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
  private readonly clock: QuorumClock
  private readonly onLost: () => void
  private readonly byId = new Map<string, Grant>()
  private sweepAt = SWEEP_AT

  constructor(clock: QuorumClock, onLost: () => void) {
    this.clock = clock
    this.onLost = onLost
  }

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

  /** Too few stores have it. Some may, and whoever holds it may not hear of the loss. */
  lose(id: string): void {
    this.byId.delete(id)
    this.onLost()
  }

  /** When a lease of so many milliseconds that is granted now is over everywhere, whatever delayed it. */
  endOf(ttl: number): number {
    return this.clock.now() + 2 * ttl
  }

  /** Claims that were left to run out. */
  private sweep(): void {
    const now = this.clock.now()
    for (const [id, { endsAt }] of this.byId) if (endsAt < now) this.byId.delete(id)
    this.sweepAt = Math.max(SWEEP_AT, this.byId.size * 2)
  }
}
