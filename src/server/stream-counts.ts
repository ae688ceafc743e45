import type { Limits } from './limits.ts'
import type { Principal } from './rights.ts'

/** Of all connections, for requests that are answered at once. */
const FREE = 1 / 16

/**
 * How many connections each principal keeps for itself: sessions, event streams, and requests that wait. All together leave
 * some for the others: for whoever asks how the server is, and for releases.
 */
export class StreamCounts {
  private readonly most: number
  private readonly mostInAll: number
  private readonly counts = new Map<Principal, number>()
  private all = 0

  constructor({ streamsPerPrincipal, connections }: Pick<Limits, 'streamsPerPrincipal' | 'connections'>) {
    this.most = streamsPerPrincipal
    this.mostInAll = connections - Math.ceil(connections * FREE)
  }

  /** False when there are too many; then nothing has to be left. */
  enter(principal: Principal): boolean {
    const count = this.counts.get(principal) ?? 0
    if (count >= this.most || this.all >= this.mostInAll) return false
    this.all++
    this.counts.set(principal, count + 1)
    return true
  }

  leave(principal: Principal): void {
    const count = this.counts.get(principal) ?? 0
    this.all--
    if (count <= 1) this.counts.delete(principal)
    else this.counts.set(principal, count - 1)
  }
}
