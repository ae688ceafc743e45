import { ALL } from '../core/contract.ts'
import { checkWait } from '../core/arguments.ts'
import { LockReentryError } from '../core/errors.ts'
import { printable } from '../core/printing.ts'
import { aborted, notFree } from '../runtime/lane-errors.ts'
import type { LaneKind } from '../runtime/lane-kind.ts'
import type { Lane } from '../runtime/lane.ts'
import { OwnLease } from '../runtime/lease.ts'
import type { Lease } from '../runtime/lease.ts'
import type { Session } from '../runtime/session.ts'
import { checkPermitsInside, nestedIn, runInside } from './context.ts'
import type { Kind, Section } from './context.ts'
import { NestedLease } from './nested-lease.ts'
import { unwatched } from './leak-watch.ts'
import type { LeakWatch } from './leak-watch.ts'
import { checkBody, checkCallOptions, checkMaxHold, checkPermits, checkSignal, checkTtl } from './options.ts'
import type { AcquireOptions, PermitOptions, ResolvedLockOptions } from './options.ts'
import { runAndRelease } from './run.ts'
import type { Returned } from './run.ts'

/** A name to be locked, in one way. Cheap to make, holds nothing itself, may be kept and shared. */
export interface Lock {
  readonly name: string
  /** Waits for the lock. Rejects with a LockTimeoutError, LockAbortedError, StoreUnavailableError … */
  acquire(options?: AcquireOptions): Promise<Lease>
  /** Takes the lock if it is free now: one attempt, null when somebody has it or stands in line. */
  tryAcquire(options?: Omit<AcquireOptions, 'wait'>): Promise<Lease | null>
  /** Waits for the lock, runs the function, releases. */
  run<T>(body: (lease: Lease) => Returned<T>, options?: AcquireOptions): Promise<Awaited<T>>
}

/** A lock of which several permits can be taken at once. */
export interface Semaphore extends Lock {
  readonly capacity: number
  acquire(options?: PermitOptions): Promise<Lease>
  tryAcquire(options?: Omit<PermitOptions, 'wait'>): Promise<Lease | null>
  run<T>(body: (lease: Lease) => Returned<T>, options?: PermitOptions): Promise<Awaited<T>>
}

export interface ReadWriteLock {
  readonly name: string
  /** Many at a time. */
  readonly read: Lock
  /** Alone. */
  readonly write: Lock
  /**
   * Turns a held write lease into a read lease without letting another writer in between: readers come in, writers wait until it is
   * released. It stays the same lease, with its token and its signal. From the call on, whatever comes of it, the lease is
   * good for reading only; the store is asked until it answers or the lease ends. Rejects with a LockLostError when
   * the lease is not held (any more), and with an UnsupportedError where the store cannot do it. There is no way back up.
   */
  downgrade(lease: Lease): Promise<void>
}

export const EXCLUSIVE: Kind = { mode: 'exclusive', capacity: 1, weight: 1, reentrant: false }
export const READ: Kind = { mode: 'read', capacity: ALL, weight: 1, reentrant: false }
export const WRITE: Kind = { mode: 'write', capacity: ALL, weight: ALL, reentrant: false }

/** Where a lock belongs. */
export interface LockHome {
  readonly session: Session
  readonly leaks: LeakWatch | null
}

/** All locks are this: a claim of some weight on a capacity. */
export class CapacityLock implements Semaphore {
  readonly name: string
  readonly capacity: number
  readonly kind: Kind
  private readonly session: Session
  private readonly defaults: ResolvedLockOptions
  private readonly leaks: LeakWatch | null
  private readonly laneKind: LaneKind
  private lane: Lane | null = null

  constructor({ session, leaks }: LockHome, name: string, kind: Kind, options: ResolvedLockOptions) {
    this.session = session
    this.name = name
    this.capacity = kind.capacity
    this.kind = kind
    this.defaults = options
    this.leaks = leaks
    const { ttl, renew, fair } = options
    this.laneKind = session.kindOf({ weight: kind.weight, capacity: kind.capacity, ttl, renew, fair })
  }

  acquire(options: PermitOptions = NO_OPTIONS): Promise<Lease> {
    const handle = this.leaks?.sample() ?? null
    const lease = this.getting(options)
    return handle === null ? lease : lease.then(handle)
  }

  tryAcquire(options: Omit<PermitOptions, 'wait'> = NO_OPTIONS): Promise<Lease | null> {
    const handle = this.leaks?.sample() ?? null
    const lease = this.trying(options)
    return handle === null ? lease : lease.then(handle)
  }

  async run<T>(
    body: (lease: Lease) => Returned<T>,
    options: PermitOptions = NO_OPTIONS,
  ): Promise<Awaited<T>> {
    checkBody(body)
    const lease = await this.getting(options)
    const { store, loop } = this.session
    return runAndRelease(lease, store.kind, () => runInside([this.section(lease)], () => body(lease)), loop)
  }

  /** What code is inside of that runs with this lease. */
  section(lease: Lease): Section {
    const { session, kind } = this
    return { session, kind, lease: unwatched(lease) }
  }

  /** From now on it may be held so long, and no longer. */
  limit(lease: Lease, maxHold: number = this.defaults.maxHold): void {
    const own = unwatched(lease)
    if (maxHold !== Infinity && own instanceof OwnLease) own.limitTo(maxHold, this.session.clock.now())
  }

  sameHoldfast({ session }: CapacityLock): boolean {
    return session === this.session
  }

  /** Rejects where the code that asks could only wait for itself. Who does not wait for permits may ask for any. */
  async checkInside(how: 'wait' | 'try'): Promise<void> {
    const { session, name, kind } = this
    const check = (): void => {
      nestedIn(session, name, kind)
      if (kind.mode === 'permits' && how === 'wait') checkPermitsInside(session, name, kind, 1)
    }
    try {
      check()
    } catch (error) {
      await this.unlessOver(error, async () => check())
    }
  }

  private getting(options: PermitOptions): Promise<Lease> {
    try {
      return this.take(options)
    } catch (error) {
      return this.unlessOver(error, () => this.take(options))
    }
  }

  private trying(options: PermitOptions): Promise<Lease | null> {
    try {
      return this.tryTake(options)
    } catch (error) {
      return this.unlessOver(error, () => this.tryTake(options))
    }
  }

  private take(options: PermitOptions): Promise<Lease> {
    const {
      wait = this.defaults.wait,
      maxHold = this.defaults.maxHold,
      signal,
    } = this.checked(options, 'wait')
    const nested = this.nested(maxHold, signal)
    if (nested !== null) return this.session.loop.given(nested)
    if (wait === 0) return this.atOnce(this.laneFor(options), maxHold, signal)
    // Before there is a lane: nobody would forget one that nothing ever came through.
    if (this.kind.mode === 'permits') {
      checkPermitsInside(this.session, this.name, this.kind, options.permits ?? 1)
    }
    return this.laneFor(options).acquire({ wait, maxHold, signal })
  }

  private tryTake(options: PermitOptions): Promise<Lease | null> {
    const { maxHold = this.defaults.maxHold, signal } = this.checked(options, 'try')
    const nested = this.nested(maxHold, signal)
    return nested === null
      ? this.laneFor(options).tryAcquire({ maxHold, signal })
      : this.session.loop.given(nested)
  }

  private nested(maxHold: number, signal: AbortSignal | undefined): Lease | null {
    const { session, name, kind } = this
    const outer = nestedIn(session, name, kind)
    if (outer === null) return null
    if (signal?.aborted === true) throw aborted({ name, session, capacity: this.capacity }, signal)
    return new NestedLease(outer, kind.mode, maxHold)
  }

  /**
   * A follow-up of the section's last step runs a moment before the section knows that it has ended: it is asked again when
   * every promise callback has run. Whoever is inside still is so then.
   */
  private async unlessOver<T>(error: unknown, again: () => Promise<T>): Promise<T> {
    if (!(error instanceof LockReentryError)) throw error
    await new Promise<void>((resolve) => this.session.env.defer(resolve))
    return again()
  }

  private checked(options: PermitOptions, how: 'wait' | 'try'): PermitOptions {
    if (options === NO_OPTIONS) return options
    checkCallOptions(options, how, this.kind.mode === 'permits')
    const { wait, ttl, maxHold, permits, signal } = options
    if (wait !== undefined) checkWait('wait', wait)
    if (ttl !== undefined) checkTtl(ttl, this.session.store.capabilities)
    if (maxHold !== undefined) checkMaxHold(maxHold)
    if (permits !== undefined) checkPermits(permits, this.capacity)
    checkSignal(signal)
    return options
  }

  private laneFor({ ttl, permits }: PermitOptions): Lane {
    const { session, name, laneKind } = this
    if (ttl === undefined && permits === undefined) {
      this.lane = session.lane(name, laneKind, this.lane)
      return this.lane
    }
    const spec = { ...laneKind, ttl: ttl ?? laneKind.ttl, weight: permits ?? laneKind.weight }
    return session.lane(name, session.kindOf(spec), null)
  }

  private async atOnce(lane: Lane, maxHold: number, signal: AbortSignal | undefined): Promise<Lease> {
    const { env } = this.session
    const since = env.mono()
    const lease = await lane.tryAcquire({ maxHold, signal })
    // Nobody was waited for, but the store's answer was.
    if (lease === null) throw notFree(lane, Math.round(env.mono() - since))
    return lease
  }
}

const NO_OPTIONS: PermitOptions = {}

printable(CapacityLock, 'Lock', ({ name, kind: { mode, capacity, reentrant } }) => ({
  name,
  mode,
  ...(mode === 'permits' ? { capacity } : {}),
  ...(reentrant ? { reentrant } : {}),
}))
