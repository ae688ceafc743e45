import type { ClaimKeys } from './commands.ts'
import type { Connection } from './connection.ts'

// Taken once: a user's fake timers must not move a lease.
const { performance } = globalThis

/** What this process remembers of a claim that it was granted. All of it only saves questions: the item decides. */
export interface Grant {
  readonly id: string
  readonly claimKeys: ClaimKeys
  readonly owner: string
  token: bigint
  count: number
  /** The last token that was reserved for it; undefined: somebody has reserved some since, and may have held the lock with them. */
  reserved: bigint | undefined
  /** The item's CAS value, and the connection on which it was read: a restarted server counts from one again. */
  cas: string
  connection: Connection
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
  /** The newest one, which is not in the map: most are given back before the next one comes. */
  private newest: Grant | null = null
  private sweepAt = FEW

  /** `lock`: the name's key. What is known of an id under another name is not about this claim. */
  get(id: string, lock: string): Grant | undefined {
    const { newest, byId } = this
    const grant = newest?.id === id ? newest : byId.size === 0 ? undefined : byId.get(id)
    return grant?.claimKeys.lock === lock ? grant : undefined
  }

  add(grant: Grant): void {
    const before = this.newest
    this.newest = grant
    if (this.byId.size > 0) this.byId.delete(grant.id)
    if (before === null || before.id === grant.id) return
    this.byId.set(before.id, before)
    if (this.byId.size < this.sweepAt) return
    // Those whose claims nobody gave back.
    const now = performance.now()
    for (const [key, { endsAt }] of this.byId) if (endsAt < now) this.byId.delete(key)
    this.sweepAt = Math.max(FEW, this.byId.size * 2)
  }

  delete(id: string): void {
    if (this.newest?.id === id) this.newest = null
    else if (this.byId.size > 0) this.byId.delete(id)
  }
}
