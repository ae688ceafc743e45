import { AsyncLocalStorage } from 'node:async_hooks'
import { LockAbortedError, LockReentryError } from '../core/errors.ts'
import { onAbort } from '../runtime/abort-listeners.ts'

interface Round<V> {
  readonly controller: AbortController
  readonly outer: Round<unknown> | undefined
  callers: number
  outcome: Promise<V>
}

/** The rounds that the running code is part of. */
const inside = new AsyncLocalStorage<Round<unknown>>()

/**
 * Callers of this process who want the same thing at the same time share one round: its result, or its error. A round
 * goes on while anybody is left who wants it.
 */
export class Rounds<V> {
  private readonly running = new Map<string, Round<V>>()

  /**
   * `start` gets the signal that nobody is left, and a function to call when the round takes no more callers: whoever asks
   * after that starts a new one.
   */
  join(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal, over: () => void) => Promise<V>,
  ): Promise<V> {
    // An aborted signal says nothing any more: who came with one would be waited for.
    if (signal?.aborted === true) return Promise.reject(abortedError(key, signal))
    const round = this.running.get(key) ?? this.begin(key, start)
    for (let outer = inside.getStore(); outer !== undefined; outer = outer.outer) {
      if (outer !== round) continue
      const message = `The load of "${key}" asks for "${key}" itself, and would wait for itself.`
      return Promise.reject(new LockReentryError(message))
    }
    round.callers++
    if (signal === undefined) return round.outcome
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

  private begin(key: string, start: (signal: AbortSignal, over: () => void) => Promise<V>): Round<V> {
    const controller = new AbortController()
    const round: Round<V> = { controller, outer: inside.getStore(), callers: 0, outcome: UNSTARTED }
    const over = (): void => this.end(key, round)
    this.running.set(key, round)
    round.outcome = inside.run(round, () => start(controller.signal, over)).finally(over)
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
