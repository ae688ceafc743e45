import { WITHDRAWN_MS } from '../../core/claim-queue.ts'
import { now } from './client/time.ts'

/** Ids of claims that were withdrawn: a copy of their request that turns up late is refused. */
export class Withdrawn {
  /** Until when; the oldest first. */
  private readonly until = new Map<string, number>()

  add(id: string): void {
    const time = now()
    for (const [old, end] of this.until) {
      if (end > time) break
      this.until.delete(old)
    }
    this.until.delete(id)
    this.until.set(id, time + WITHDRAWN_MS)
  }

  has(id: string): boolean {
    const end = this.until.get(id)
    return end !== undefined && end > now()
  }
}
