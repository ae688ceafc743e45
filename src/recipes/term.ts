import { isError } from '../core/error-printing.ts'
import { ClosedError, LockAbortedError, LockLostError } from '../core/errors.ts'
import { printable } from '../core/printing.ts'
import { onAbort } from '../runtime/abort-listeners.ts'
import type { AssertHeldOptions, Lease } from '../runtime/lease.ts'
import { context } from '../runtime/sections.ts'

/** One leadership, from election to loss or resignation. */
export interface Term {
  readonly name: string
  /** Larger than those of all terms before: a resource that compares it refuses a leader of the past. */
  readonly token: bigint
  /**
   * Aborts when the term ends: with a LockLostError as its reason when it was lost, a ClosedError when the Holdfast is being
   * closed, else with an AbortError.
   */
  readonly signal: AbortSignal
  /** Throws a LockLostError when another one may lead; right also just after the event loop was blocked. */
  assertHeld(options?: AssertHeldOptions): void
  /** Ends the term. Another one can be elected when `onElected` has come to its end. */
  resign(): void
}

interface Calling {
  readonly term: LeaseTerm
  readonly outer: Calling | undefined
}

/** The callbacks that the running code is part of. */
const calling = context<Calling>()

export class LeaseTerm implements Term {
  readonly signal: AbortSignal
  readonly over: Promise<void>
  private readonly lease: Lease
  private readonly controller = new AbortController()
  private running = false

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
  /** Runs the term's callback. */
  async call(callback: () => unknown): Promise<void> {
    this.running = true
    try {
      await calling.run({ term: this, outer: calling.getStore() }, callback)
    } finally {
      this.running = false
    }
  }

  /** The running code is part of the callback, which has not come to its end: to wait for that end would never end. */
  get isCaller(): boolean {
    if (!this.running) return false
    for (let each = calling.getStore(); each !== undefined; each = each.outer) {
      if (each.term === this) return true
    }
    return false
  }
}

/** Whether a callback threw because it was told to stop. That is no failure. */
export function obeyed(error: unknown, { name, signal }: LeaseTerm): boolean {
  if (!signal.aborted) return false
  const reason: unknown = signal.reason
  if (error === reason || error instanceof LockAbortedError) return true
  if (error instanceof LockLostError) return error.lock === name
  // Its last lines may have asked for another lock of the Holdfast that is being closed.
  if (error instanceof ClosedError) return reason instanceof ClosedError
  return isError(error) && (error.name === 'AbortError' || error.cause === reason)
}

printable(LeaseTerm, 'Term', ({ name, token, lasts }) => ({ name, token, over: !lasts }))
