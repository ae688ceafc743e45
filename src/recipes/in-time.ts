import type { MaybePromise } from '../core/contract.ts'
import { StoreUnavailableError } from '../core/errors.ts'
import { onAbort } from '../runtime/abort-listeners.ts'
import type { Env, Timer } from '../runtime/env.ts'
import { abortedError } from './rounds.ts'

/** A cache that never answers would keep a lock, and with it all instances, for ever. */
const CACHE_TIMEOUT_MS = 10_000

export interface Asked {
  /** What is asked, for the error: "cache". */
  readonly what: string
  readonly key: string
  readonly signal?: AbortSignal | undefined
}

/** The answer of a cache, unless it takes too long or nobody wants it any more. */
export async function inTime<A>(
  env: Env,
  { what, key, signal }: Asked,
  call: () => MaybePromise<A>,
): Promise<A> {
  const answer = call()
  // A Map has answered already.
  if (!isThenable(answer)) return answer
  let timer: Timer | undefined
  let forget: (() => void) | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `The ${what} did not answer within ${CACHE_TIMEOUT_MS} ms. Check that it runs and can be reached.`
    const tooLate = (): void => reject(new StoreUnavailableError(message, { store: what }))
    timer = env.setTimer(tooLate, CACHE_TIMEOUT_MS, false)
    if (signal === undefined) return
    const leave = (): void => reject(abortedError(key, signal))
    if (signal.aborted) leave()
    else forget = onAbort(signal, leave)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    timer?.cancel()
    forget?.()
  }
}

function isThenable<A>(answer: MaybePromise<A>): answer is Exclude<MaybePromise<A>, A> {
  return typeof (answer as { then?: unknown } | null | undefined)?.then === 'function'
}
