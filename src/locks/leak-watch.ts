import { platform } from '#platform'

import { claimBehind, tellClaim } from '../core/leased-claim.ts'
import { printable } from '../core/printing.ts'
import { OwnLease } from '../runtime/lease.ts'
import type { AssertHeldOptions, Lease, ReleaseOutcome } from '../runtime/lease.ts'

/**
 * A lease that its owner has forgotten is renewed for as long as the process lives, and nobody is told. Here the owner gets a handle
 * instead of the lease: when that is garbage and the lease is held, there is a warning. Watching costs a stack trace, so all
 * of the first leases are watched and then a sample: a leak that matters happens again and again.
 */

const FIRST = 64
const THEN_ONE_IN = 1024
/** Warnings per Holdfast; one per name. */
const MOST_WARNINGS = 20

interface Watched {
  readonly lease: OwnLease
  /** A program may have its own idea of a stack: a list, or an object. */
  readonly taken: { readonly stack?: unknown }
  readonly warned: Set<string>
}

const dropped = new FinalizationRegistry(({ lease, taken, warned }: Watched) => {
  const { name } = lease
  if (!lease.unfinished || lease.endsByItself || warned.has(name) || warned.size >= MOST_WARNINGS) return
  warned.add(name)
  const message =
    `A lease on "${name}" was forgotten without release(): it is held and renewed until the process ends. ` +
    'Release it, use run() or `await using`; or keep the lease, if it is meant to be held.'
  // Without the heading, this file and the lock itself.
  const detail = ['It was taken:', ...linesOf(taken).slice(3)].join('\n')
  platform.warn(message, { type: 'HoldfastWarning', code: 'HOLDFAST_LEASE_DROPPED', detail })
})

/** Nobody could catch what is thrown here: it would end the process. */
function linesOf(taken: Watched['taken']): readonly string[] {
  try {
    // Written when it is first looked at, by the program's own function if it has one.
    const { stack } = taken
    return typeof stack === 'string' ? stack.split('\n') : []
  } catch {
    return []
  }
}

export class LeakWatch {
  private taken = 0
  private readonly warned = new Set<string>()

  /** Null, or what makes a handle of the lease that the call will get: where it was called is known only now. */
  sample(): (<L extends Lease | null>(lease: L) => L | Lease) | null {
    const number = this.taken++
    if (number >= FIRST && number % THEN_ONE_IN !== 0) return null
    const taken = {}
    // Not everywhere.
    Error.captureStackTrace?.(taken)
    const { warned } = this
    return (lease) => {
      if (!(lease instanceof OwnLease)) return lease
      const handle = new LeaseHandle(lease)
      dropped.register(handle, { lease, taken, warned })
      return handle
    }
  }
}

/** What the owner has of a lease that is watched. */
export class LeaseHandle implements Lease {
  readonly lease: OwnLease

  constructor(lease: OwnLease) {
    this.lease = lease
  }

  get name(): string {
    return this.lease.name
  }
  get token(): bigint {
    return this.lease.token
  }
  get signal(): AbortSignal {
    return this.lease.signal
  }
  get held(): boolean {
    return this.lease.held
  }

  remaining(): number {
    return this.lease.remaining()
  }
  assertHeld(options?: AssertHeldOptions): void {
    this.lease.assertHeld(options)
  }
  release(): Promise<ReleaseOutcome> {
    return this.lease.release()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** The lease behind a handle, or itself. */
export function unwatched(lease: Lease): Lease {
  return lease instanceof LeaseHandle ? lease.lease : lease
}

tellClaim(LeaseHandle, ({ lease }) => claimBehind(lease))

printable(LeaseHandle, 'Lease', ({ lease }) => {
  const { name, token, held } = lease
  return { name, token, held, remaining: Math.floor(lease.remaining()) }
})
