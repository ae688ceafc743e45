import { onAbort } from '../runtime/abort-listeners.ts'
import type { AssertHeldOptions, Lease } from '../runtime/lease.ts'

/** One leadership, from election to loss or resignation. */
export interface Term {
  readonly name: string
  /** Larger than those of all terms before: a resource that compares it refuses a leader of the past. */
  readonly token: bigint
  /** Aborts when the term ends: with a LockLostError as its reason when it was lost, else with an AbortError. */
  readonly signal: AbortSignal
  /** Throws a LockLostError when another one may lead; right also just after the event loop was blocked. */
  assertHeld(options?: AssertHeldOptions): void
  /** Ends the term. Another one can be elected when `onElected` has come to its end. */
  resign(): void
}

export class LeaseTerm implements Term {
  readonly signal: AbortSignal
  readonly over: Promise<void>
  private readonly lease: Lease
  private readonly controller = new AbortController()

  constructor(lease: Lease) {
    this.lease = lease
    this.signal = this.controller.signal
    this.over = new Promise((resolve) => void onAbort(this.signal, resolve))
    const end = (): void => this.controller.abort(lease.signal.reason)
    if (lease.signal.aborted) end()
    else onAbort(lease.signal, end)
  }

  get name(): string {
    return this.lease.name
  }
  get token(): bigint {
    return this.lease.token
  }
  get lasts(): boolean {
    return !this.signal.aborted && this.lease.held
  }

  assertHeld(options?: AssertHeldOptions): void {
    this.lease.assertHeld(options)
  }

  resign(): void {
    this.controller.abort()
  }
}
