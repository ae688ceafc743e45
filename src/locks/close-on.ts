import { platform } from '#platform'

import type { CloseResult } from '../runtime/closing.ts'
import { systemEnv } from '../runtime/env.ts'

/** What a signal is to end. */
interface Closable {
  close(drain?: 0): Promise<CloseResult>
}

/** On our listeners, those of another copy of the package too: how many Holdfasts close is no business of the process's end. */
const OURS = Symbol.for('holdfast.closeOn')

/** Those that all versions of the package signal-exit listen to and that a program may be told to end by. */
const HEARD_BY_ALL: ReadonlySet<string> = new Set(['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'])

/**
 * How many listeners the package signal-exit has, which many others bring along (execa, ora, proper-lockfile). They end the process, but only
 * where nobody else listens: whoever left that to them would wait for ever. Its copies count themselves for the same reason.
 */
function signalExits(signal: NodeJS.Signals): number {
  if (!HEARD_BY_ALL.has(signal)) return 0
  const emitters: unknown[] = [
    Reflect.get(process, '__signal_exit_emitter__'),
    // eslint-disable-next-line no-restricted-globals -- that is where it keeps it
    Reflect.get(globalThis, Symbol.for('signal-exit emitter')),
  ]
  return emitters.reduce<number>((sum, each) => {
    const { count } = Object(each) as { readonly count?: unknown }
    return sum + (typeof count === 'number' ? count : 0)
  }, 0)
}

/** Whether one of so many listeners may be there to end the process. */
const mayEndIt = (listeners: number, signal: NodeJS.Signals): boolean =>
  listeners > 0 && listeners !== signalExits(signal)

/**
 * Closes at the first signal and at the second without waiting any longer. Then the process ends by the signal, as it would have
 * without us, unless somebody else listens to it too: then that is for them to say.
 */
export function closeOnSignals(
  signals: ReadonlySet<NodeJS.Signals>,
  holdfast: Closable,
  onClosed: ((result: CloseResult, signal: NodeJS.Signals) => void) | undefined,
): () => void {
  let told = false
  let closed = false
  let endedByOthers = false
  const stop = (): void => {
    for (const signal of signals) process.off(signal, listener)
  }
  const end = (signal: NodeJS.Signals): void => {
    stop()
    if (!endedByOthers && !mayEndIt(process.listenerCount(signal), signal)) endBy(signal)
  }
  const listener = (signal: NodeJS.Signals): void => {
    // All that is left is what the program does by itself: whoever asks again does not wait for that.
    if (closed) return end(signal)
    if (told) {
      void holdfast.close(0).catch(() => undefined)
      return
    }
    told = true
    endedByOthers = mayEndIt(process.listeners(signal).filter((other) => !(OURS in other)).length, signal)
    holdfast
      .close()
      .then((result) => {
        closed = true
        return onClosed?.(result, signal)
      })
      .catch((error: unknown) => {
        platform.warn(`Closing at ${signal} failed: ${String(error)}`, {
          type: 'HoldfastWarning',
          code: 'HOLDFAST_CLOSE_FAILED',
        })
        // Node tells it a moment later, when the signal would have ended the process.
        return new Promise<void>((resolve) => systemEnv.defer(resolve))
      })
      .finally(() => end(signal))
  }
  if (!platform.isMainThread) warnOfThread()
  Object.defineProperty(listener, OURS, { value: true })
  // Before all others: who listens once is gone from the list when it was called, and may have work left.
  for (const signal of signals) process.prependListener(signal, listener)
  return stop
}

function endBy(signal: NodeJS.Signals): void {
  process.kill(process.pid, signal)
  // To the first process of a container a signal that nobody listens to does nothing.
  if (process.pid === 1) process.exit(128 + (platform.signals.get(signal) ?? 0))
}

function warnOfThread(): void {
  const message =
    'closeOn() hears nothing in a worker thread: signals reach the main thread alone. Have that one tell the worker, and call close() there.'
  platform.warn(message, { type: 'HoldfastWarning', code: 'HOLDFAST_CLOSE_ON_THREAD' })
}
