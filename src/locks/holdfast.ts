import { platform } from '#platform'

import { INSPECT, LIST } from '../core/answers.ts'
import type { Shape } from '../core/answers.ts'
import {
  checkBoolean,
  checkFunction,
  checkMs,
  checkName,
  checkOptions,
  checkText,
  checkWhole,
  MAX_MS,
} from '../core/arguments.ts'
import { ALL } from '../core/contract.ts'
import type {
  ClaimInfo,
  ListPage,
  ListQuery,
  MaybePromise,
  NameInfo,
  Store,
  Unknown,
} from '../core/contract.ts'
import {
  BrokenStoreError,
  ClosedError,
  InvalidArgumentError,
  StoreUnavailableError,
  UnsupportedError,
} from '../core/errors.ts'
import { bare } from '../core/error-printing.ts'
import type { HoldfastError } from '../core/errors.ts'
import { unheard } from '../core/unheard.ts'
import { printable, shown } from '../core/printing.ts'
import type { CloseResult } from '../runtime/closing.ts'
import { systemEnv } from '../runtime/env.ts'
import { brokenStore, noAnswer } from '../runtime/lane-errors.ts'
import { outside } from '../runtime/sections.ts'
import { Session } from '../runtime/session.ts'
import { checkStore } from './check-store.ts'
import { closeOnSignals } from './close-on.ts'
import { downgradeLease } from './downgrade.ts'
import type { Kind } from './context.ts'
import { CapacityLock, EXCLUSIVE, READ, WRITE } from './lock.ts'
import type { Lock, ReadWriteLock, Semaphore } from './lock.ts'
import { SortedLockSet } from './lock-set.ts'
import type { LockSet } from './lock-set.ts'
import { LeakWatch } from './leak-watch.ts'
import { checkBody, checkEnv, checkLockOptions, DEFAULTS, OPTIONS, resolve } from './options.ts'
import type { HoldfastOptions, LockOptions, ReentrantOptions, ResolvedLockOptions } from './options.ts'
import { keyText, stripeOf } from './stripes.ts'

/** A claim as people may see it: everything but its secret id. */
export type PublicClaim = Omit<ClaimInfo, 'id'>
export interface LockInfo extends Omit<NameInfo, 'holders' | 'waiters'> {
  readonly holders: readonly PublicClaim[]
  readonly waiters: readonly PublicClaim[]
}

export interface StripedLock {
  readonly stripes: number
  /** The lock for a key: always the same one for the same key. */
  for(key: string | number | bigint): Lock
}

/** Milliseconds. */
export interface CloseOptions {
  /** How long those that hold a lock may go on until they release it. Their signals abort at once. Default 10,000. */
  readonly drain?: number | undefined
  /** How long, after that, the store may take to hear of it, and to be closed. Default 5,000. */
  readonly timeout?: number | undefined
  /**
   * `false`: no drain; what is held is neither renewed nor released, and runs out by itself unless its owner releases it before. Default true.
   */
  readonly release?: boolean | undefined
}

export interface CloseOnOptions extends CloseOptions {
  /** Is told how it ended, before the process ends. */
  readonly onClosed?: ((result: CloseResult, signal: NodeJS.Signals) => void) | undefined
}

const MAX_STRIPES = 65_536
const CLOSE = { drain: 10_000, timeout: 5000 }
const UNHEARD: readonly NodeJS.Signals[] = ['SIGKILL', 'SIGSTOP']

/** Locks at one store. Make one per process and keep it. */
export class Holdfast implements AsyncDisposable {
  readonly store: Store
  private readonly session: Session
  private readonly defaults: ResolvedLockOptions
  private readonly closeStore: boolean
  private readonly leaks: LeakWatch | null

  static {
    printable(Holdfast, 'Holdfast', ({ store, session: { owner, closed } }) => ({
      store: store.kind,
      owner,
      closed,
    }))
  }

  constructor(store: Store, options: HoldfastOptions = {}) {
    checkStore(store)
    checkOptions(options, OPTIONS.holdfast, 'ttl')
    const { turn = {}, patience = 5000, requestTimeout = 5000, env = systemEnv, clock = {} } = options
    const { owner = platform.owner() } = options
    checkOptions(turn, OPTIONS.turn, 'ms')
    checkOptions(clock, OPTIONS.clock, 'wall')
    checkBoolean('clock.wall', clock.wall)
    checkEnv(env)
    checkText('owner', owner)
    checkBoolean('closeStore', options.closeStore)
    checkBoolean('leakWarnings', options.leakWarnings)
    const { count = 256, ms = 4 } = turn
    checkWhole('turn.count', count, { min: 1, max: ALL })
    checkMs('turn.ms', ms, { min: 0, max: MAX_MS })
    checkMs('patience', patience, { min: 10, max: MAX_MS })
    checkMs('requestTimeout', requestTimeout, { min: 1, max: MAX_MS })
    this.store = store
    this.closeStore = options.closeStore ?? false
    this.leaks = options.leakWarnings === false ? null : new LeakWatch()
    this.defaults = resolve(options, DEFAULTS, store.capabilities)
    this.session = new Session(store, { env, clock, owner, patience, requestTimeout, turn: { count, ms } })
  }

  /** Whether `close` has been called. */
  get closed(): boolean {
    return this.session.closed
  }

  /** One at a time. */
  mutex(name: string, options: ReentrantOptions = {}): Lock {
    return this.exclusive(name, options)
  }

  /** Many readers or one writer, first come, first served. */
  readWriteLock(name: string, options: ReentrantOptions = {}): ReadWriteLock {
    checkLockOptions(options, OPTIONS.reentrant)
    const { reentrant = false } = options
    if (!this.store.capabilities.shared) throw this.unsupported('read-write locks')
    return {
      name,
      read: this.lock(name, { ...READ, reentrant }, options),
      write: this.lock(name, { ...WRITE, reentrant }, options),
      downgrade: (lease) => downgradeLease(this.session, name, lease),
    }
  }

  /** Up to `capacity` at a time. Every user of the name must give the same capacity. */
  semaphore(name: string, capacity: number, options: LockOptions = {}): Semaphore {
    if (!this.store.capabilities.permits) throw this.unsupported('semaphores')
    checkLockOptions(options, OPTIONS.lock)
    checkWhole('capacity', capacity, { min: 1, max: ALL - 1 })
    return this.lock(name, { mode: 'permits', capacity, weight: 1, reentrant: false }, options)
  }

  /** Several locks, by name or as they are: taken in one order, all or none. */
  all(locks: readonly (string | Lock)[], options: ReentrantOptions = {}): LockSet {
    if (!Array.isArray(locks)) throw new InvalidArgumentError('locks must be an array', { argument: 'locks' })
    checkLockOptions(options, OPTIONS.reentrant)
    const { wait } = resolve(options, this.defaults, this.store.capabilities)
    const made = locks.map((lock: unknown, index) => {
      if (lock instanceof CapacityLock) return lock
      if (typeof lock === 'string') return this.exclusive(lock, options)
      throw notALock(lock, `locks[${index}]`)
    })
    return new SortedLockSet(this.session, made, wait)
  }

  /** One name split into many locks: keys that fall on different stripes do not wait for each other. */
  striped(name: string, stripes: number, options: ReentrantOptions = {}): StripedLock {
    checkName(name)
    checkWhole('stripes', stripes, { min: 1, max: MAX_STRIPES })
    checkLockOptions(options, OPTIONS.reentrant)
    return { stripes, for: (key) => this.mutex(`${name}#${stripeOf(keyText(key), stripes)}`, options) }
  }

  /**
   * Runs code that is inside of no section, although it is called from one: for work that the section starts and does not
   * wait for. It may wait for the locks that the section holds, and shares none of them. Nor is it part of a cached load or a
   * leader's `onElected`.
   */
  outside<T>(body: () => T): T {
    checkBody(body)
    return outside(body)
  }

  /** Who holds a name and who waits for it. */
  async inspect(name: string): Promise<LockInfo> {
    if (this.session.closed) await this.turnAway()
    checkName(name)
    const info = await this.question<NameInfo>(INSPECT, (timeout) => this.store.inspect(name, timeout))
    const open = ({ id: _, ...claim }: ClaimInfo): PublicClaim => shown(claim)
    return { ...info, holders: info.holders.map(open), waiters: info.waiters.map(open) }
  }

  /** The names that are held or waited for. */
  async list(query: ListQuery = {}): Promise<ListPage> {
    if (this.session.closed) await this.turnAway()
    checkOptions(query, OPTIONS.list, 'prefix')
    if (query.limit !== undefined) checkWhole('limit', query.limit, { min: 1, max: 10_000 })
    checkText('prefix', query.prefix)
    checkText('cursor', query.cursor)
    return this.question<ListPage>(LIST, (timeout) => this.store.list(Object.freeze({ ...query }), timeout))
  }

  /**
   * No new locks, and waiters are rejected with a ClosedError. What is held stays held until its owner releases it or the `drain` is over:
   * closing never makes two sections overlap. Signals abort at once, with a ClosedError as their reason. A further call can only
   * bring the end forward.
   */
  async close(options: CloseOptions = {}): Promise<CloseResult> {
    checkOptions(options, OPTIONS.close, 'drain')
    checkClose(options)
    // What a further call does not say is left as it is.
    const unsaid = this.session.closed ? { drain: Infinity, timeout: Infinity } : CLOSE
    const { drain = unsaid.drain, timeout = unsaid.timeout, release = true } = options
    return this.session.close({ drain, timeout, release }, () => {
      return this.closeStore ? this.closeTheStore() : undefined
    })
  }

  /**
   * Closes when the process is told to end: `closeOn(['SIGTERM', 'SIGINT'])`. What is held is drained; a second signal cuts that
   * short, and one after that does not wait for `onClosed`. Then the process ends by the signal, unless it has other listeners: those end it. Returns what undoes it.
   */
  closeOn(signals: readonly NodeJS.Signals[], options: CloseOnOptions = {}): () => void {
    checkOptions(options, OPTIONS.closeOn, 'drain')
    const { onClosed, ...close } = options
    // Now, while somebody can hear of it: at the signal it would end the process in the middle of what it holds.
    checkClose(close)
    checkFunction('onClosed', onClosed)
    if (platform.signals.size === 0)
      throw new UnsupportedError('Nobody sends signals here. Call close() where your program ends.')
    const known: unknown = signals
    if (
      !Array.isArray(known) ||
      !known.every((signal) => typeof signal === 'string' && platform.signals.has(signal))
    ) {
      throw new InvalidArgumentError("signals must be an array of signals: ['SIGTERM', 'SIGINT']", {
        argument: 'signals',
      })
    }
    const deaf = UNHEARD.find((signal) => signals.includes(signal))
    if (deaf !== undefined)
      throw new InvalidArgumentError(`signals must be ones that can be heard: nobody can listen to ${deaf}`, {
        argument: 'signals',
      })
    return closeOnSignals(
      // Once each: a second call is a second signal.
      new Set(signals),
      { close: (drain) => this.close(drain === 0 ? { drain } : close) },
      onClosed,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  private exclusive(name: string, options: ReentrantOptions): CapacityLock {
    checkLockOptions(options, OPTIONS.reentrant)
    const { reentrant = false } = options
    return this.lock(name, { ...EXCLUSIVE, reentrant }, options)
  }

  private lock(name: string, kind: Kind, options: LockOptions): CapacityLock {
    checkName(name)
    if (kind.reentrant && !platform.hasContexts) throw notReentrant()
    const { session, leaks } = this
    const resolved = resolve(options, this.defaults, this.store.capabilities)
    return new CapacityLock({ session, leaks }, name, kind, resolved)
  }

  private turnAway(): Promise<never> {
    const { session } = this
    return new Promise((_, reject) =>
      session.loop.refuse(() => reject(new ClosedError('The Holdfast was closed.'))),
    )
  }

  private async question<T extends object>(
    shape: Shape,
    ask: (timeout: number) => MaybePromise<T | Unknown>,
  ): Promise<T> {
    const { session } = this
    const answer = await new Promise<T | Unknown>((resolve) => {
      session.ask<T | Unknown>(shape, () => ask(session.requestTimeout), resolve)
    })
    // Also one that says nothing: whoever asks again at once, in a loop, keeps no timer waiting.
    session.clock.now()
    const heard = await session.loop.given(answer)
    if ('kind' in heard && heard.kind === 'unknown') throw this.noAnswer(heard)
    return heard as T
  }

  private noAnswer(answer: Unknown): HoldfastError {
    const { retryable } = answer
    const cause = bare(answer.cause)
    if (cause instanceof BrokenStoreError || cause instanceof UnsupportedError) return cause
    const { kind: store } = this.store
    return new StoreUnavailableError(noAnswer(store, answer), { store, cause, retryable })
  }

  private async closeTheStore(): Promise<void> {
    try {
      unheard(await this.store.close())
    } catch (cause) {
      throw brokenStore(this.store.kind, 'close', 'threw', cause)
    }
  }

  private unsupported(what: string): UnsupportedError {
    const { kind: store } = this.store
    return new UnsupportedError(`The ${store} store has no ${what}. Use the redis or the memory store.`, {
      store,
    })
  }
}

export function checkClose({ drain, timeout, release }: CloseOptions): void {
  if (drain !== undefined) checkMs('drain', drain, { min: 0, max: MAX_MS })
  if (timeout !== undefined) checkMs('timeout', timeout, { min: 0, max: MAX_MS })
  checkBoolean('release', release)
}

function notReentrant(): UnsupportedError {
  return new UnsupportedError(
    'Locks cannot be re-entrant here: nothing tells which code is inside of a section. Pass the lease down instead.',
  )
}

function notALock(given: unknown, argument: string): InvalidArgumentError {
  const thing = typeof given === 'object' && given !== null ? given : {}
  const instead =
    'write' in thing
      ? 'pass one side of a read-write lock: its read or write'
      : 'stripes' in thing
        ? 'pass one of its locks: for(key)'
        : 'pass names, or locks of a Holdfast'
  return new InvalidArgumentError(`${argument} is not a lock: ${instead}.`, { argument })
}
