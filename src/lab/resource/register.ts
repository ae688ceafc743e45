/** One write as a resource decided it, in the order in which it decided. */
export interface Decision {
  readonly client: string
  readonly token: bigint
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
 * The thing that a lock guards: a number that clients read, add one to, and write back. Fenced, it refuses a write whose
 * token is smaller than the largest it has seen; unfenced, it believes everybody.
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

  write({ client, token, read, value }: WriteRequest): boolean {
    const accepted = !this.fenced || token >= this.highest
    if (accepted) {
      this.current = value
      if (token > this.highest) this.highest = token
    }
    this.log.push({ client, token, read, wrote: value, accepted, at: process.hrtime.bigint() })
    return accepted
  }
}
