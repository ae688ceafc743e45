import { AsyncResource } from 'node:async_hooks'

import { LockLostError } from '../core/errors.ts'
import { shown } from '../core/printing.ts'
import type { Lease } from '../runtime/lease.ts'
import { onAbort } from '../runtime/abort-listeners.ts'
import { Line } from '../runtime/line.ts'
import type { InLine } from '../runtime/line.ts'
import { abortedError } from './rounds.ts'

/** What was taken from one segment. */
export interface Part {
  readonly segment: number
  readonly quantity: number
  /** What the segment had left after it. */
  readonly left: number
  /** The token with which it was written. */
  readonly token: bigint
}

interface Request extends InLine<Request> {
  readonly quantity: number
  /** Where it was asked for: what is written for it belongs to that transaction, tenant or trace, and not to whoever looks. */
  readonly context: AsyncResource
  readonly resolve: (parts: readonly Part[] | null) => void
  readonly reject: (error: unknown) => void
  readonly forgetSignal: (() => void) | undefined
}

type AllLocks = (work: (values: number[], leases: readonly Lease[]) => Promise<void>) => Promise<void>
type Write = (segment: number, value: number, lease: Lease) => Promise<boolean>

/**
 * The look at all segments at once, which alone may say "sold out". When something is sold out everybody needs one, so those
 * of one process who ask while a look is under way share the next.
 */
export class SoldOutCheck {
  private readonly underAllLocks: AllLocks
  private readonly write: Write
  private readonly asking = new Line<Request>()
  private looking = false

  constructor(underAllLocks: AllLocks, write: Write) {
    this.underAllLocks = underAllLocks
    this.write = write
  }

  /** Takes from as many segments as it needs. Null: there is not so much in all of them. */
  take(quantity: number, signal: AbortSignal | undefined): Promise<readonly Part[] | null> {
    if (signal?.aborted === true) return Promise.reject(abortedError('stock', signal))
    return new Promise((resolve, reject) => {
      const forgetSignal = signal && onAbort(signal, () => this.leave(request, signal))
      const context = new AsyncResource('holdfast:take', { requireManualDestroy: true })
      const place = { previous: null, following: null }
      const request: Request = { quantity, context, resolve, reject, forgetSignal, ...place }
      this.asking.push(request)
      // Errors reach the requests.
      if (!this.looking) this.look().catch(() => {})
    })
  }

  private leave(request: Request, signal: AbortSignal): void {
    this.asking.remove(request)
    request.reject(abortedError('stock', signal))
  }

  private async look(): Promise<void> {
    this.looking = true
    for (let { first } = this.asking; first !== null; { first } = this.asking) {
      const look = (): Promise<void> => this.underAllLocks((values, leases) => this.serve(values, leases))
      try {
        // Whoever started the one before may have ended, and the transaction in which it would be read.
        await first.context.runInAsyncScope(look)
      } catch (error) {
        for (let request = this.next(); request !== null; request = this.next()) request.reject(error)
      }
    }
    this.looking = false
  }

  /** From here on its signal has no effect: something may be written for it. */
  private next(): Request | null {
    const request = this.asking.shift()
    request?.forgetSignal?.()
    return request
  }

  /** Those who are there now. Who comes later gets the next look, for the others want the locks too. */
  private async serve(values: number[], leases: readonly Lease[]): Promise<void> {
    for (let count = this.asking.length; count > 0; count--) {
      const request = this.next()
      if (request === null) return
      try {
        for (const lease of leases) lease.assertHeld()
        const left = values.reduce((sum, value) => sum + value, 0)
        const { quantity, context } = request
        const take = (): Promise<readonly Part[]> => this.takeFrom(values, leases, quantity)
        request.resolve(left < quantity ? null : await context.runInAsyncScope(take))
      } catch (error) {
        request.reject(error)
        // What is in the storage is not known any more: the others need a fresh look.
        return
      }
    }
  }

  private async takeFrom(
    values: number[],
    leases: readonly Lease[],
    wanted: number,
  ): Promise<readonly Part[]> {
    const parts: Part[] = []
    let missing = wanted
    try {
      for (const [segment, lease] of leases.entries()) {
        const value = values[segment] ?? 0
        const quantity = Math.min(value, missing)
        if (quantity === 0) continue
        const left = value - quantity
        if (!(await this.write(segment, left, lease))) throw refused(lease)
        values[segment] = left
        parts.push(shown({ segment, quantity, left, token: lease.token }))
        missing -= quantity
      }
      return parts
    } catch (error) {
      throw await this.undo(parts, values, leases, error)
    }
  }

  /** A part is no use to who wanted all. What cannot be put back is told, for nobody else would know of it. */
  private async undo(
    parts: readonly Part[],
    values: number[],
    leases: readonly Lease[],
    cause: unknown,
  ): Promise<unknown> {
    const stuck: Part[] = []
    for (const part of parts) {
      const lease = leases[part.segment] as Lease
      const value = part.left + part.quantity
      const done = await this.write(part.segment, value, lease).catch(() => false)
      if (done) values[part.segment] = value
      else stuck.push(part)
    }
    const [first] = stuck
    if (first === undefined) return cause
    const { name: lock } = leases[first.segment] as Lease
    const message = `Not all could be taken, and not all of it put back: see error.outcome for what is taken and nobody has.`
    const outcome = { status: 'fulfilled', value: stuck } as const
    return new LockLostError(message, { lock, token: first.token, outcome, cause })
  }
}

export function refused({ name, token }: Lease): LockLostError {
  const message = `The storage refused the token of "${name}": a later holder has written, or there is no row to write to. This write has changed nothing.`
  return new LockLostError(message, { lock: name, token })
}
