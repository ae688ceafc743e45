import { checkWait } from '../core/arguments.ts'
import { InvalidArgumentError, LockTimeoutError } from '../core/errors.ts'
import { printable } from '../core/printing.ts'
import { timedOut } from '../runtime/lane-errors.ts'
import type { AssertHeldOptions, Lease, ReleaseOutcome } from '../runtime/lease.ts'
import type { Session } from '../runtime/session.ts'
import type { CapacityLock } from './lock.ts'
import { runInside } from './context.ts'
import { checkBody, checkCallOptions, checkMaxHold } from './options.ts'
import type { AcquireOptions } from './options.ts'
import { runAndRelease } from './run.ts'
import type { Returned } from './run.ts'

/** Leases on several names, as one. */
export interface LeaseSet extends Lease {
  /** One per name, in the order in which they were taken. */
  readonly leases: readonly Lease[]
}

/** Several locks that are taken together: all or none. */
export interface LockSet {
  readonly names: readonly string[]
  acquire(options?: AcquireOptions): Promise<LeaseSet>
  tryAcquire(options?: Omit<AcquireOptions, 'wait'>): Promise<LeaseSet | null>
  run<T>(body: (leases: LeaseSet) => Returned<T>, options?: AcquireOptions): Promise<Awaited<T>>
}

/** Everybody takes them in the order of their names, so that no two can wait for each other. */
export class SortedLockSet implements LockSet {
  readonly names: readonly string[]
  private readonly session: Session
  private readonly locks: readonly CapacityLock[]
  private readonly wait: number

  constructor(session: Session, locks: readonly CapacityLock[], wait: number) {
    if (locks.length === 0) throw refusal('must not be empty.')
    const byName = new Map<string, CapacityLock>()
    for (const lock of locks) {
      const before = byName.get(lock.name)
      if (before === undefined) byName.set(lock.name, lock)
      else checkAlike(before, lock)
    }
    // Not localeCompare: every process must sort alike, whatever its language.
    this.locks = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    this.names = this.locks.map(({ name }) => name)
    this.session = session
    this.wait = wait
  }

  async acquire(options: AcquireOptions = {}): Promise<LeaseSet> {
    checkCallOptions(options, 'wait', false)
    return new CombinedLease((await this.takeAll(options)) as readonly Lease[])
  }

  async tryAcquire(options: Omit<AcquireOptions, 'wait'> = {}): Promise<LeaseSet | null> {
    checkCallOptions(options, 'try', false)
    const { maxHold } = options
    const leases = await this.collect('try', maxHold, (lock) =>
      lock.tryAcquire({ ...options, maxHold: Infinity }),
    )
    return leases === null ? null : new CombinedLease(leases)
  }

  async run<T>(body: (leases: LeaseSet) => Returned<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    checkBody(body)
    const set = await this.acquire(options)
    const inside = this.locks.map((lock, index) => lock.section(set.leases[index] as Lease))
    const { store, loop } = this.session
    return runAndRelease(set, store.kind, () => runInside(inside, () => body(set)), loop)
  }

  private async takeAll(options: AcquireOptions): Promise<readonly Lease[] | null> {
    const { env } = this.session
    const { wait = this.wait, maxHold } = options
    checkWait('wait', wait)
    const since = env.mono()
    const late = (name: string): LockTimeoutError =>
      timedOut({ name, session: this.session, capacity: 0 }, Math.round(env.mono() - since))
    try {
      return await this.collect(wait === 0 ? 'try' : 'wait', maxHold, async (lock) => {
        const left = wait === Infinity ? Infinity : Math.max(0, Math.round(since + wait - env.mono()))
        // With a wait of 0 it would be a try, which takes as long as the store does.
        if (left === 0 && wait > 0) throw late(lock.name)
        return lock.acquire({ ...options, wait: left, maxHold: Infinity })
      })
    } catch (error) {
      // The last one had what the others left of the time, and knows of no more.
      if (!(error instanceof LockTimeoutError) || wait === 0) throw error
      throw late(error.lock ?? '')
    }
  }

  /**
   * Takes one after the other; gives back what it has when one cannot be had. Nobody works with the first while the last is waited for:
   * `maxHold` counts from when all are there, or it could be over by then.
   */
  private async collect(
    how: 'wait' | 'try',
    maxHold: number | undefined,
    take: (lock: CapacityLock) => Promise<Lease | null>,
  ): Promise<readonly Lease[] | null> {
    if (maxHold !== undefined) checkMaxHold(maxHold)
    const leases: Lease[] = []
    let complete = false
    // What cannot be had from here is known before the first one is asked for.
    for (const lock of this.locks) await lock.checkInside(how)
    try {
      for (const lock of this.locks) {
        const lease = await take(lock)
        if (lease === null) return null
        leases.push(lease)
      }
      // The first ones may have run out while the last one was waited for.
      for (const lease of leases) lease.assertHeld()
      for (const [index, lock] of this.locks.entries()) lock.limit(leases[index] as Lease, maxHold)
      complete = true
      return leases
    } finally {
      if (!complete) {
        const released = Promise.all(leases.map((lease) => lease.release()))
        // Whoever asks again at once finds them free. A store that does not answer holds nobody up: they are cleaned up behind.
        await this.session.within(GIVE_BACK_MS, released)
      }
    }
  }
}

/** How long a set that cannot be had waits until what it had is given back. */
const GIVE_BACK_MS = 50

const refusal = (why: string): InvalidArgumentError =>
  new InvalidArgumentError(`locks ${why}`, { argument: 'locks' })

/** Equal names count once, as two keys of a striped lock may have to; then they must mean the same. */
function checkAlike(a: CapacityLock, b: CapacityLock): void {
  const { name, kind } = a
  if (!a.sameHoldfast(b))
    throw refusal(`must be of the same Holdfast where their names are: "${name}" is not.`)
  if (kind.capacity !== b.kind.capacity)
    throw refusal(`must be of one kind each: "${name}" is in it as two kinds of lock.`)
  if (kind.mode !== b.kind.mode)
    throw refusal(
      `must be of one kind each: "${name}" is in it for reading and for writing. The write lock suffices.`,
    )
  if (kind.mode === 'permits')
    throw refusal(
      `must have each semaphore once: "${name}" is a semaphore. For more of its permits, take it alone with { permits }.`,
    )
}

class CombinedLease implements LeaseSet {
  readonly leases: readonly Lease[]
  readonly name: string
  /** The largest one. A resource that is guarded by one of the names compares that name's own token. */
  readonly token: bigint
  private combined: AbortSignal | null = null

  constructor(leases: readonly Lease[]) {
    this.leases = leases
    this.name = leases.map(({ name }) => name).join(' + ')
    this.token = leases.reduce((highest, { token }) => (token > highest ? token : highest), 0n)
  }

  // Not AbortSignal.any: Node keeps what that makes, and all that listens to it, for as long as the process lives.
  get signal(): AbortSignal {
    if (this.combined === null) {
      const controller = new AbortController()
      for (const { signal } of this.leases) {
        if (signal.aborted) controller.abort(signal.reason)
        else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
      }
      this.combined = controller.signal
    }
    return this.combined
  }
  get held(): boolean {
    return this.leases.every(({ held }) => held)
  }

  remaining(): number {
    return this.leases.reduce((least, lease) => Math.min(least, lease.remaining()), Infinity)
  }

  assertHeld(options?: AssertHeldOptions): void {
    for (const lease of this.leases) lease.assertHeld(options)
  }

  async release(): Promise<ReleaseOutcome> {
    const outcomes = await Promise.all(this.leases.map((lease) => lease.release()))
    return (
      outcomes.find((outcome) => outcome === 'expired') ?? outcomes.find((o) => o === 'unknown') ?? 'released'
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

printable(SortedLockSet, 'LockSet', ({ names }) => ({ names }))
printable(CombinedLease, 'LeaseSet', (set) => {
  const { token, held, leases } = set
  return { token, held, remaining: Math.floor(set.remaining()), leases }
})
