import { LockAbortedError, LockReentryError } from '../core/errors.ts'
import { onAbort } from '../runtime/abort-listeners.ts'
import { sections } from '../runtime/sections.ts'
import { refuseLock, Loading } from './loading.ts'
import type { Holders } from './loading.ts'

interface Round<V> {
  readonly controller: AbortController
  readonly load: Loading
  /** Where it was begun. */
  readonly section: unknown
  callers: number
  outcome: Promise<V>
}

/** What a round is made of. */
export interface Course {
  readonly load: Loading
  /** Aborts when nobody is left who wants the value. */
  readonly left: AbortSignal
  /** To be called when the round takes no more callers: whoever asks after that starts a new one. */
  readonly over: () => void
}

type Start<V> = (course: Course) => Promise<V>

/**
 * Callers of this process who want the same thing at the same time share one round: its result, or its error. A round
 * goes on while anybody is left who wants it.
 */
export class Rounds<V> {
  private readonly running = new Map<string, Round<V>>()
  private readonly holders: Holders

  constructor(holders: Holders) {
    this.holders = holders
  }

  async join(key: string, lock: string, signal: AbortSignal | undefined, start: Start<V>): Promise<V> {
    const there = this.open(key)
    try {
      return await this.enter(key, lock, signal, start)
    } catch (error) {
      // Another one's section kept that round from a lock. This caller is not inside of it; the next round may be another one's again.
      const others = there !== undefined && there.section !== sections.getStore()
      const over = there !== this.open(key)
      if (others && over && error instanceof LockReentryError) return this.join(key, lock, signal, start)
      throw error
    }
  }

  private async enter(
    key: string,
    lock: string,
    signal: AbortSignal | undefined,
    start: Start<V>,
  ): Promise<V> {
    // An aborted signal says nothing any more: who came with one would be waited for.
    if (signal?.aborted === true) throw abortedError(key, signal)
    const there = this.open(key)
    if (there === undefined) refuseLock(key, lock, this.holders)
    else there.load.refuseLoop()
    const round = there ?? this.begin(key, new Loading(key, lock, this.holders), start)
    round.callers++
    const arrived = round.load.awaited()
    try {
      return await (signal === undefined ? round.outcome : this.unlessAborted(key, round, signal))
    } finally {
      arrived()
    }
  }

  /** One that lost its lock takes nobody in: whoever asks now may do so after a `forget` that came in between. */
  private open(key: string): Round<V> | undefined {
    const round = this.running.get(key)
    return round?.load.lost === true ? undefined : round
  }

  private unlessAborted(key: string, round: Round<V>, signal: AbortSignal): Promise<V> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        reject(abortedError(key, signal))
        if (--round.callers > 0) return
        this.end(key, round)
        round.controller.abort(signal.reason)
      }
      const forget = onAbort(signal, leave)
      round.outcome
        .then(resolve, reject)
        .finally(forget)
        .catch(() => {})
    })
  }

  private begin(key: string, load: Loading, start: Start<V>): Round<V> {
    const controller = new AbortController()
    const section = sections.getStore()
    const round: Round<V> = { controller, load, section, callers: 0, outcome: UNSTARTED }
    const over = (): void => {
      load.end()
      this.end(key, round)
    }
    this.running.set(key, round)
    round.outcome = load.run(() => start({ load, left: controller.signal, over })).finally(over)
    // All callers may have left before it fails.
    round.outcome.catch(() => {})
    return round
  }

  private end(key: string, round: Round<V>): void {
    if (this.running.get(key) === round) this.running.delete(key)
  }
}

export function abortedError(what: string, signal: AbortSignal): LockAbortedError {
  return new LockAbortedError(`The wait for "${what}" was aborted.`, { cause: signal.reason as unknown })
}

const UNSTARTED: Promise<never> = new Promise(() => {})
