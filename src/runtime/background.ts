import { platform } from '#platform'

const home = platform.makeScope('holdfast')

/**
 * Runs code in nobody's async context. A timer, or a connection, belongs to the request in which it was made: renewals of the whole process
 * would run with the transaction, the tenant and the trace of whichever request came first, long after that has ended.
 */
export function inBackground<T>(body: () => T): T {
  return home.runInAsyncScope(body)
}
