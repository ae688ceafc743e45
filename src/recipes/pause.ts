import type { Holdfast } from '../locks/holdfast.ts'
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

const PIECE_MS = 250

/** In pieces: when the Holdfast is closed nothing is left to wait for, and a timer would keep the process. */
export async function pauseUnlessClosed(
  env: Env,
  holdfast: Pick<Holdfast, 'closed'>,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  const until = env.mono() + ms
  for (let left = ms; left > 0; left = until - env.mono()) {
    if (signal?.aborted === true || holdfast.closed) return
    await pause(env, Math.min(left, PIECE_MS), signal)
  }
}
