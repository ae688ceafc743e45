import type { Env } from '../runtime/env.ts'
import { onAbort } from '../runtime/abort-listeners.ts'

/** Resolves after `ms`, or as soon as the signal aborts. Never rejects. */
export function pause(env: Env, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = env.setTimer(
      () => {
        forget?.()
        resolve()
      },
      ms,
      false,
    )
    const forget =
      signal &&
      onAbort(signal, () => {
        timer.cancel()
        resolve()
      })
  })
}

/** Doubles with every failure, with a part left to chance so that a fleet does not come back in step. */
export function backOff(
  env: Env,
  failures: number,
  { first, longest }: { first: number; longest: number },
): number {
  return Math.min(first * 2 ** failures, longest) * (0.5 + env.random() / 2)
}
