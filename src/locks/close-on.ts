import type { CloseResult } from '../runtime/closing.ts'

/** What a signal is to end. */
interface Closable {
  close(drain?: 0): Promise<CloseResult>
}

export interface SignalHandling {
  /** Is told how it ended, before the process ends. */
  readonly onClosed?: ((result: CloseResult, signal: NodeJS.Signals) => void) | undefined
}

/**
 * Closes at the first signal and at the second without waiting any longer. Then the process ends by the signal, as it would have
 * without us, unless somebody else listens to it too: then that is for them to say.
 */
export function closeOnSignals(
  signals: readonly NodeJS.Signals[],
  holdfast: Closable,
  { onClosed }: SignalHandling,
): () => void {
  let told = false
  const stop = (): void => {
    for (const signal of signals) process.off(signal, listener)
  }
  const listener = (signal: NodeJS.Signals): void => {
    if (told) {
      void holdfast.close(0).catch(() => undefined)
      return
    }
    told = true
    holdfast
      .close()
      .then((result) => onClosed?.(result, signal))
      .catch((error: unknown) => {
        process.emitWarning(`Closing at ${signal} failed: ${String(error)}`, {
          type: 'HoldfastWarning',
          code: 'HOLDFAST_CLOSE_FAILED',
        })
      })
      .finally(() => {
        stop()
        if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
      })
  }
  for (const signal of signals) process.on(signal, listener)
  return stop
}
