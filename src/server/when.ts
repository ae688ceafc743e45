import type { MaybePromise } from '../core/contract.ts'

/** Goes on at once with what is there at once: a promise for every answer of the embedded store would cost a tick each. */
export function when<T, U>(value: MaybePromise<T>, then: (settled: T) => U): MaybePromise<U> {
  return value instanceof Promise ? value.then(then) : then(value)
}
