import type { ZooKeeperError } from './errors.ts'
import type { Operation } from './operations.ts'

/** A request that was sent and not answered yet. */
export interface Pending {
  readonly operation: Operation<unknown>
  readonly xid: number
  readonly sentAt: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: ZooKeeperError) => void
}

/** In the order of their answers. The list is cut now and then rather than shifted each time. */
export class PendingRequests {
  private readonly list: Pending[] = []
  private answered = 0

  get first(): Pending | undefined {
    return this.list[this.answered]
  }

  push(request: Pending): void {
    this.list.push(request)
  }

  /** The first one is answered. */
  shift(): void {
    this.answered++
    if (this.answered === this.list.length) this.list.length = 0
    else if (this.answered < 1024) return
    else this.list.splice(0, this.answered)
    this.answered = 0
  }

  /** All that are left, and none after that. */
  drain(): Pending[] {
    const left = this.list.slice(this.answered)
    this.list.length = 0
    this.answered = 0
    return left
  }
}
