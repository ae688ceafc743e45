import { platform } from '#platform'

import type { Scope } from '../platform/platform.ts'
import type { Claim } from './claim.ts'
import { Deadline } from './deadlines.ts'
import { events } from './events.ts'
import type { Lane } from './lane.ts'
import type { Lease } from './lease.ts'
import type { InLine } from './line.ts'

/** One caller's wait for a lease. Its deadline is the end of its patience (`wait`). */
export class Task extends Deadline implements InLine<Task> {
  readonly lane: Lane
  readonly resolve: (lease: Lease | null) => void
  readonly reject: (error: unknown) => void
  /** On the monotonic clock, as its deadline is: how long somebody waits has nothing to do with what the wall clock says. */
  readonly since: number
  readonly maxHold: number
  /** In the lane's line. */
  previous: Task | null = null
  following: Task | null = null
  /** The claim that is for this task alone; such a task stands in no line. */
  only: Claim | null = null
  /** Where it was asked for, if anybody listens: whoever gives it the lease is another request. */
  readonly context: Scope | null = events.acquired.hasSubscribers
    ? platform.makeScope('holdfast:acquire')
    : null
  /** Forgets the caller's AbortSignal. */
  forgetSignal: (() => void) | null = null

  constructor(
    lane: Lane,
    { since, maxHold }: { readonly since: number; readonly maxHold: number },
    resolve: (lease: Lease | null) => void,
    reject: (error: unknown) => void,
  ) {
    super()
    this.lane = lane
    this.since = since
    this.maxHold = maxHold
    this.resolve = resolve
    this.reject = reject
  }

  due(): void {
    this.lane.timedOut(this)
  }

  /** Neither its time nor its signal concerns it any more. */
  settle(): void {
    this.cancel()
    this.forgetSignal?.()
    this.forgetSignal = null
  }

  give(lease: Lease): void {
    this.settle()
    const { session } = this.lane
    if (session.loop.isDue()) session.env.defer(() => this.resolve(lease))
    else this.resolve(lease)
  }

  fail(error: Error): void {
    this.settle()
    this.reject(error)
  }

  /** There is nothing for it, at once; `null` is what a try is told. See LoopTurns.refuse. */
  refuse(error: Error | null): void {
    this.settle()
    this.lane.session.loop.refuse(() => (error === null ? this.resolve(null) : this.reject(error)))
  }
}
