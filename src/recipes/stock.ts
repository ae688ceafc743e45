import { checkName, checkOptions, checkWhole } from '../core/arguments.ts'
import { printable, shown } from '../core/printing.ts'
import type { MaybePromise } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { CapacityLock } from '../locks/lock.ts'
import type { Lock } from '../locks/lock.ts'
import type { LockSet } from '../locks/lock-set.ts'
import { checkEnv, checkSignal } from '../locks/options.ts'
import type { LockOptions } from '../locks/options.ts'
import { systemEnv } from '../runtime/env.ts'
import type { Env } from '../runtime/env.ts'
import type { Lease } from '../runtime/lease.ts'
import { sections } from '../runtime/sections.ts'
import { checkHoldfast } from './check-holdfast.ts'
import { SoldOutCheck, refused } from './sold-out-check.ts'
import type { Part } from './sold-out-check.ts'

/** Where the quantities are: a row, a key, a file for each segment. */
export interface StockStorage {
  read(segment: number): MaybePromise<number>
  /**
   * Keeps the value together with the fence, in one step, unless a larger fence has been there before: then it changes nothing and
   * resolves with false. A number, null or an object is refused: 0 rows are not what 0 is to Redis, and a driver's answer may say either. Whatever a sale writes besides may be part of the same transaction.
   */
  write(segment: number, value: number, fence: bigint): unknown
}

export interface StockOptions {
  /** Into how many parts the quantity is split. The same everywhere, for ever: `fill` again to change it. */
  readonly segments: number
  readonly storage: StockStorage
  /** Of the segments' locks, `<name>#0` and so on. */
  readonly lock?: Pick<LockOptions, 'ttl' | 'wait'> | undefined
  /** Clocks, timers and randomness; for tests. */
  readonly env?: Env | undefined
}

export interface Taken {
  readonly quantity: number
  /** Most often one; several when no segment alone had enough. */
  readonly parts: readonly Part[]
}

export interface TakeOptions {
  /** Ends the wait. What has been written by then is taken. */
  readonly signal?: AbortSignal | undefined
}

/** A quantity split over locked segments: those who take from different ones do not wait for each other. */
export interface StripedStock {
  /** Null: at one moment during the call there was not so much left in all segments together. */
  take(quantity?: number, options?: TakeOptions): Promise<Taken | null>
  /** Gives back, or adds. */
  put(quantity?: number, options?: TakeOptions): Promise<void>
  /** How much is left in all, at one moment. Takes all locks. */
  total(options?: TakeOptions): Promise<number>
  /** Sets how much there is, in equal parts. */
  fill(quantity: number, options?: TakeOptions): Promise<void>
}

export function stripedStock(holdfast: Holdfast, name: string, options: StockOptions): StripedStock {
  // Who writes no types may have left them out.
  const storage = (options as StockOptions | undefined)?.storage as Partial<StockStorage> | undefined
  if (typeof storage?.read !== 'function' || typeof storage.write !== 'function') {
    const message = 'storage must have read(segment) and write(segment, value, fence)'
    throw new InvalidArgumentError(message, { argument: 'storage' })
  }
  checkOptions(options, OPTIONS, 'segments')
  checkHoldfast(holdfast)
  checkName(name)
  if (options.env !== undefined) checkEnv(options.env)
  return new Segments(holdfast, name, options)
}

const OPTIONS: readonly (keyof StockOptions)[] = ['segments', 'storage', 'lock', 'env']
const OF_CALL: readonly (keyof TakeOptions)[] = ['signal']
const MAX_SEGMENTS = 1024

class Segments implements StripedStock {
  readonly name: string
  private readonly storage: StockStorage
  private readonly env: Env
  private readonly locks: readonly Lock[]
  private readonly all: LockSet
  private readonly soldOut: SoldOutCheck
  /** How many tasks of this process are at each segment. */
  private readonly crowd: number[]
  /** Segments that were empty when last seen. A hint that saves a visit; only the last look may say "sold out". */
  private readonly empty: boolean[]

  constructor(holdfast: Holdfast, name: string, { segments, storage, lock, env = systemEnv }: StockOptions) {
    checkWhole('segments', segments, { min: 1, max: MAX_SEGMENTS })
    this.name = name
    this.storage = storage
    this.env = env
    this.locks = Array.from({ length: segments }, (_, segment) => holdfast.mutex(`${name}#${segment}`, lock))
    this.all = holdfast.all(this.locks, lock)
    this.crowd = this.locks.map(() => 0)
    this.empty = this.locks.map(() => false)
    this.soldOut = new SoldOutCheck(
      (work) => this.underAllLocks({}, async (leases) => work(await this.readAll(leases), leases)),
      (segment, value, lease) => this.write(segment, value, lease),
    )
  }

  get segments(): number {
    return this.locks.length
  }

  async take(quantity = 1, options: TakeOptions = {}): Promise<Taken | null> {
    checkQuantity(quantity, 1)
    checkCall(options)
    const tried = new Set<number>()
    for (;;) {
      const segment = this.leastCrowded((each) => !tried.has(each) && !this.empty[each])
      if (segment === null) break
      tried.add(segment)
      const part = await this.takeFrom(segment, quantity, options)
      if (part !== null) return { quantity, parts: [part] }
    }
    await this.checkInside()
    // One after the other may all have been empty although they never were at the same time: look at all at once.
    const parts = await this.soldOut.take(quantity, options.signal)
    return parts === null ? null : { quantity, parts }
  }

  async put(quantity = 1, options: TakeOptions = {}): Promise<void> {
    checkQuantity(quantity, 1)
    checkCall(options)
    const segment = this.leastCrowded(() => true) ?? 0
    await this.at(segment, options, async (lease) => {
      const value = (await this.read(segment)) + quantity
      checkQuantity(value, 0)
      if (!(await this.write(segment, value, lease))) throw refused(lease)
    })
  }

  async total(options: TakeOptions = {}): Promise<number> {
    checkCall(options)
    return this.underAllLocks(options, async (leases) =>
      (await this.readAll(leases)).reduce((sum, value) => sum + value, 0),
    )
  }

  async fill(quantity: number, options: TakeOptions = {}): Promise<void> {
    checkQuantity(quantity, 0)
    checkCall(options)
    const { length } = this.locks
    return this.underAllLocks(options, async (leases) => {
      for (const [segment, lease] of leases.entries()) {
        const value = Math.floor(quantity / length) + (segment < quantity % length ? 1 : 0)
        if (!(await this.write(segment, value, lease))) throw refused(lease)
      }
    })
  }

  /** Who holds a segment would wait, in a look that it shares with others, for itself. */
  private async checkInside(): Promise<void> {
    if (sections.getStore() === undefined) return
    for (const lock of this.locks) if (lock instanceof CapacityLock) await lock.checkInside('wait')
  }

  /** Null: it has not enough, or another one was there after us. */
  private takeFrom(segment: number, quantity: number, options: TakeOptions): Promise<Part | null> {
    return this.at(segment, options, async (lease) => {
      const value = await this.read(segment)
      if (value < quantity) return null
      const left = value - quantity
      return (await this.write(segment, left, lease))
        ? shown({ segment, quantity, left, token: lease.token })
        : null
    })
  }

  /**
   * Not `lock.run`: that one rejects when the lease is lost after the work, but what the storage has accepted is taken, and
   * nobody would have it.
   */
  private async at<T>(
    segment: number,
    { signal }: TakeOptions,
    work: (lease: Lease) => Promise<T>,
  ): Promise<T> {
    const lock = this.locks[segment] as Lock
    this.crowd[segment] = (this.crowd[segment] ?? 0) + 1
    try {
      const lease = await lock.acquire(signal === undefined ? {} : { signal })
      try {
        assertBegun(lease)
        return await work(lease)
      } finally {
        await lease.release()
      }
    } finally {
      this.crowd[segment] = (this.crowd[segment] ?? 0) - 1
    }
  }

  private async underAllLocks<T>(
    { signal }: TakeOptions,
    work: (leases: readonly Lease[]) => Promise<T>,
  ): Promise<T> {
    const set = await this.all.acquire(signal === undefined ? {} : { signal })
    try {
      // The set is in the order of the names, where #10 comes before #2.
      const leases = this.locks.map(({ name }) => set.leases.find((lease) => lease.name === name) as Lease)
      leases.forEach(assertBegun)
      return await work(leases)
    } finally {
      await set.release()
    }
  }

  /** All at one moment, or a LockLostError. */
  private async readAll(leases: readonly Lease[]): Promise<number[]> {
    const values = await Promise.all(leases.map((_, segment) => this.read(segment)))
    for (const lease of leases) lease.assertHeld()
    return values
  }

  private async read(segment: number): Promise<number> {
    const value: unknown = await this.storage.read(segment)
    if (!isQuantity(value)) throw wrongAnswer('read', 'a whole number that is not below 0', value)
    this.empty[segment] = value === 0
    return value
  }

  private async write(segment: number, value: number, lease: Lease): Promise<boolean> {
    lease.assertHeld()
    const answer = await this.storage.write(segment, value, lease.token)
    if (isAmbiguous(answer))
      throw wrongAnswer('write', 'false where it changed nothing, else with true', answer)
    const accepted = answer !== false
    if (accepted) this.empty[segment] = value === 0
    return accepted
  }

  /** The segment with the fewest tasks of this process; among equals chance decides, so that processes spread. */
  private leastCrowded(fits: (segment: number) => boolean): number | null {
    const { length } = this.locks
    const start = Math.floor(this.env.random() * length)
    let best: number | null = null
    for (let step = 0; step < length; step++) {
      const segment = (start + step) % length
      if (!fits(segment)) continue
      if (best === null || (this.crowd[segment] ?? 0) < (this.crowd[best] ?? 0)) best = segment
    }
    return best
  }
}

/** Lost, or closed, since it was granted: nothing is begun any more. */
function assertBegun({ signal }: Lease): void {
  if (signal.aborted) throw signal.reason
}

/** A signal that is none would be found out only where the segments are empty, and be waited for there. */
function checkCall(options: TakeOptions): void {
  checkOptions(options, OF_CALL, 'signal')
  checkSignal(options.signal)
}

const isQuantity = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** How many rows were changed, what a driver says of that, or what a Redis command says: taken for "done", it would sell what another one has sold. */
const isAmbiguous = (answer: unknown): boolean =>
  typeof answer === 'object' || typeof answer === 'number' || typeof answer === 'bigint'

function wrongAnswer(method: keyof StockStorage, what: string, answer: unknown): InvalidArgumentError {
  const got = answer === null ? 'null' : typeof answer === 'object' ? 'an object' : `a ${typeof answer}`
  const message = `storage.${method} must resolve with ${what}; got ${got}`
  return new InvalidArgumentError(message, { argument: 'storage' })
}

function checkQuantity(quantity: unknown, min: number): asserts quantity is number {
  checkWhole('quantity', quantity, { min, max: Number.MAX_SAFE_INTEGER })
}

// Not what it was given: a client may have a password.
printable(Segments, 'StripedStock', ({ name, segments }) => ({ name, segments }))
