/** One request as a resource decided it, in the order in which it decided. */
export interface Decision {
  readonly kind: 'read' | 'write'
  readonly client: string
  readonly token: bigint
  /** What the client had read before. */
  readonly read: number
  readonly wrote: number
  readonly accepted: boolean
  /** When, on the monotonic clock that all processes share. */
  readonly at: bigint
}

export interface WriteRequest {
  readonly client: string
  readonly token: bigint
  /** What the client had read before. */
  readonly read: number
  readonly value: number
}

/**
 * The thing that a lock guards: a number that clients read, add one to, and write back. Fenced, it refuses a request whose
 * token is smaller than the largest it has seen; unfenced, it believes everybody.
 *
 * A read shows its token too. Were it only the writes, a late write could slip in between the next holder's read and its
 * write, and be overwritten unseen.
 */
export class Register {
  readonly log: Decision[] = []
  readonly fenced: boolean
  private current = 0
  private highest = -1n

  constructor(fenced: boolean) {
    this.fenced = fenced
  }

  get value(): number {
    return this.current
  }

  /** Null: refused. */
  read(client: string, token: bigint): number | null {
    const accepted = this.admit(token)
    const { current } = this
    const at = process.hrtime.bigint()
    this.log.push({ kind: 'read', client, token, read: current, wrote: current, accepted, at })
    return accepted ? current : null
  }

  write({ client, token, read, value }: WriteRequest): boolean {
    const accepted = this.admit(token)
    if (accepted) this.current = value
    const at = process.hrtime.bigint()
    this.log.push({ kind: 'write', client, token, read, wrote: value, accepted, at })
    return accepted
  }

  private admit(token: bigint): boolean {
    if (this.fenced && token < this.highest) return false
    if (token > this.highest) this.highest = token
    return true
  }
}
