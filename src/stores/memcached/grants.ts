import type { Wire } from './commands.ts'
import type { Link } from './link.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

/** What this process remembers of a claim that it was granted. All of it only saves questions: the item decides. */
export interface Grant {
  readonly id: string
  readonly wire: Wire
  readonly owner: string
  token: bigint
  count: number
  /** The item's CAS value, and the connection on which it was read: a restarted server counts from one again. */
  cas: string
  link: Link
  seconds: number
  /** On the local clock, in ms: the item is gone by then unless it was renewed. */
  endsAt: number
  /** What stood there before, to be put back. */
  readonly tombstone: { readonly value: string; readonly until: number } | undefined
  described: boolean
  /** Somebody began to give it back. */
  over: boolean
}

const FEW = 1000

export class Grants {
  private readonly byId = new Map<string, Grant>()
  private sweepAt = FEW

  get(id: string): Grant | undefined {
    return this.byId.get(id)
  }

  add(grant: Grant): void {
    this.byId.set(grant.id, grant)
    if (this.byId.size < this.sweepAt) return
    // Those whose claims nobody gave back.
    const now = performance.now()
    for (const [key, { endsAt }] of this.byId) if (endsAt < now) this.byId.delete(key)
    this.sweepAt = Math.max(FEW, this.byId.size * 2)
  }

  delete(id: string): void {
    this.byId.delete(id)
  }
}
