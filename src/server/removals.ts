import type { ClaimRef, ReleaseAnswer, Store } from '../core/contract.ts'

const PAUSE_MS = { first: 50, longest: 2000 }

/** Takes claims that nobody wants from the store, and asks again until it is done or they have run out by themselves. */
export class Removals {
  private readonly store: Store
  private readonly timeout: number
  private readonly open = new Set<Promise<void>>()

  constructor(store: Store, timeout: number) {
    this.store = store
    this.timeout = timeout
  }

  remove({ name, id }: ClaimRef, ttl: number): void {
    const done = this.attempt({ name, id }, performance.now() + ttl).then(() => void this.open.delete(done))
    this.open.add(done)
  }

  async close(): Promise<void> {
    await Promise.all(this.open)
  }

  private async attempt(claim: ClaimRef, until: number): Promise<void> {
    for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.longest)) {
      const answer = await this.withdraw(claim)
      if (answer.kind !== 'unknown' || performance.now() + pause > until) return
      await new Promise((resolve) => void setTimeout(resolve, pause))
    }
  }

  private async withdraw(claim: ClaimRef): Promise<ReleaseAnswer> {
    try {
      return await this.store.withdraw(claim, this.timeout)
    } catch (cause) {
      return { kind: 'unknown', cause }
    }
  }
}
