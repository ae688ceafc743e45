/**
 * One listener per signal, whatever the number of waits that share it: ten thousand acquires on a server's shutdown signal
 * must neither pile up listeners nor make Node warn about them.
 */
const registry = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls back once when the signal aborts. Returns the function that forgets it. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = registry.get(signal)
  if (callbacks === undefined) {
    callbacks = new Set()
    registry.set(signal, callbacks)
  }
  const mine = callbacks
  if (mine.size === 0) signal.addEventListener('abort', callAll)
  mine.add(callback)
  return () => {
    if (mine.delete(callback) && mine.size === 0) signal.removeEventListener('abort', callAll)
  }
}

function callAll(event: Event): void {
  const signal = event.target as AbortSignal
  signal.removeEventListener('abort', callAll)
  const callbacks = registry.get(signal)
  if (callbacks === undefined) return
  registry.delete(signal)
  for (const callback of callbacks) callback()
}
