import { onAbort } from '../runtime/abort-listeners.ts'

/**
 * A signal that aborts with the first of two, and the function that unties it from them. Not `AbortSignal.any`: Node 20 never frees
 * what that made once somebody listened to it.
 */
export function either(a: AbortSignal, b: AbortSignal): { signal: AbortSignal; untie: () => void } {
  const controller = new AbortController()
  const ties = [a, b].map((each) => {
    const abort = (): void => controller.abort(each.reason)
    if (each.aborted) abort()
    return onAbort(each, abort)
  })
  return { signal: controller.signal, untie: () => ties.forEach((cut) => cut()) }
}
