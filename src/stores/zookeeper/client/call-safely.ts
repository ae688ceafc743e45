/**
 * Calls what the user gave. What goes wrong there is the user's, who is told by a warning of the process; it must not reach a
 * connection, other listeners, or the end of the process.
 */
export function callSafely(callback: () => unknown): void {
  try {
    const result: unknown = callback()
    if (result instanceof Promise) result.catch(warn)
  } catch (error) {
    warn(error)
  }
}

function warn(error: unknown): void {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const message = 'A callback for ZooKeeper threw; its error goes no further'
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_CALLBACK_THREW', detail })
}
