import type { Principal } from './rights.ts'

/** How many connections each principal keeps open for good: sessions and event streams. */
export class StreamCounts {
  private readonly most: number
  private readonly counts = new Map<Principal, number>()

  constructor(most: number) {
    this.most = most
  }

  /** False when there are too many; then nothing has to be left. */
  enter(principal: Principal): boolean {
    const count = this.counts.get(principal) ?? 0
    if (count >= this.most) return false
    this.counts.set(principal, count + 1)
    return true
  }

  leave(principal: Principal): void {
    const count = this.counts.get(principal) ?? 0
    if (count <= 1) this.counts.delete(principal)
    else this.counts.set(principal, count - 1)
  }
}
