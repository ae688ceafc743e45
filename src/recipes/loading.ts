import { LockReentryError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import type { Lease } from '../runtime/lease.ts'
import { context, outside } from '../runtime/sections.ts'

/** The loads of one Holdfast that hold their lock, by its name. */
export type Holders = Map<string, Loading>

const all = new WeakMap<Holdfast, Holders>()

/** All caches of a Holdfast share its locks. */
export function holdersOf(holdfast: Holdfast): Holders {
  const holders = all.get(holdfast) ?? new Map<string, Loading>()
  all.set(holdfast, holders)
  return holders
}

/** The load that the running code is part of. It has no link to others: such a chain would keep all that ever were. */
const inside = context<Loading>()

/**
 * A load under way in this process, and what it waits for: its lock while it has it not, and the loads that it asked for. Two that
 * wait for each other would do so for ever, in all processes, for both locks are renewed meanwhile.
 */
export class Loading {
  readonly key: string
  private readonly lock: string
  private readonly holders: Holders
  private readonly waits = new Set<{ readonly load: Loading }>()
  private lease: Lease | null = null
  private over = false

  constructor(key: string, lock: string, holders: Holders) {
    this.key = key
    this.lock = lock
    this.holders = holders
  }

  run<T>(body: () => T): T {
    return inside.run(this, body)
  }

  /** For work that nobody waits for: it may wait for whatever the caller is part of. */
  runAlone<T>(body: () => T): T {
    return outside(() => this.run(body))
  }

  /** Its lock was granted. */
  hold(lease: Lease): void {
    this.lease = lease
    this.holders.set(this.lock, this)
  }

  /** Another process may have the lock by now, and may have changed what this load has read. */
  get lost(): boolean {
    return this.lease?.held === false
  }

  /** Just before the release: from here on nobody waits for it. */
  end(): void {
    this.over = true
    this.lease = null
    this.waits.clear()
    if (this.holders.get(this.lock) === this) this.holders.delete(this.lock)
  }

  /** Notes that the running code waits for this load. Returns the function that forgets it. */
  awaited(): () => void {
    const { current } = Loading
    if (current === undefined) return () => {}
    const wait = { load: this }
    current.waits.add(wait)
    return () => void current.waits.delete(wait)
  }

  /** The load that the running code is part of, if it is not over. */
  static get current(): Loading | undefined {
    const load = inside.getStore()
    return load?.over === true ? undefined : load
  }

  /** Throws if the running code would wait for itself by waiting for this load. */
  refuseLoop(): void {
    const { current } = Loading
    if (current === undefined || !this.waitsFor(current)) return
    const { key } = this
    if (current === this) {
      throw new LockReentryError(`The load of "${key}" asks for "${key}" itself, and would wait for itself.`)
    }
    throw new LockReentryError(
      `The load of "${current.key}" asks for "${key}", whose load waits for that of "${current.key}": neither would ever end. Have one of them read what it needs from the database, or give two caches with the same keys different ones, such as "near:" before one of them.`,
    )
  }

  private waitsFor(goal: Loading, seen = new Set<Loading>()): boolean {
    if (this === goal) return true
    if (this.over || seen.has(this)) return false
    seen.add(this)
    for (const { load } of this.waits) if (load.waitsFor(goal, seen)) return true
    return this.holders.get(this.lock)?.waitsFor(goal, seen) ?? false
  }
}

/** Throws if the running code would wait for itself by waiting for a lock that a load of this process holds. */
export function refuseLock(key: string, lock: string, holders: Holders): void {
  const { current } = Loading
  if (current === undefined || holders.get(lock) === undefined) return
  if (holders.get(lock) !== current) return new Loading(key, lock, holders).refuseLoop()
  throw new LockReentryError(
    `The load of "${current.key}" asks for "${key}" while it holds the lock "${lock}" that this needs, and would wait for itself. If these are two caches with the same keys, give them different ones, such as "near:" before one of them.`,
    { lock },
  )
}
