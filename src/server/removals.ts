import { setTimeout as sleep } from 'node:timers/promises'

import type { ClaimRef, ReleaseAnswer, Store } from '../core/contract.ts'

const PAUSE_MS = { first: 50, longest: 2000 }

/** Takes claims that nobody wants from the store, and asks again until it is done or they have run out by themselves. */
export class Removals {
  private readonly store: Store
  private readonly timeout: number
  private readonly open = new Set<Promise<void>>()
  private closed = false

  constructor(store: Store, timeout: number) {
    this.store = store
    this.timeout = timeout
  }

  /** `doubtful`: a copy of its request may still be under way, so the id has to be refused from now on. */
  remove({ name, id }: ClaimRef, { ttl, doubtful }: { ttl: number; doubtful: boolean }): void {
    const until = performance.now() + ttl
    const done = this.attempt({ name, id }, doubtful, until).then(() => void this.open.delete(done))
    this.open.add(done)
  }

  /** Waits for those under way, but not for a store that does not answer. */
  async close(within: number): Promise<void> {
    const over = new AbortController()
    const enough = sleep(within, undefined, { signal: over.signal, ref: false }).catch(() => undefined)
    await Promise.race([Promise.all(this.open), enough])
    over.abort()
    this.closed = true
  }

  private async attempt(claim: ClaimRef, doubtful: boolean, until: number): Promise<void> {
    for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.longest)) {
      const first = pause === PAUSE_MS.first && !doubtful
      const answer = await this.ask(claim, first)
      if (answer.kind !== 'unknown' || this.closed || performance.now() + pause > until) return
      await sleep(pause, undefined, { ref: false })
    }
  }

  private async ask(claim: ClaimRef, certain: boolean): Promise<ReleaseAnswer> {
    try {
      if (certain) return (await this.store.release(claim, undefined, this.timeout)).released
      return await this.store.withdraw(claim, this.timeout)
    } catch (cause) {
      return { kind: 'unknown', cause }
    }
  }
}
