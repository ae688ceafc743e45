import { codeOf } from '../sql/causes.ts'
import type { CoreConnection } from './core-pool.ts'

/**
 * To parse one of our statements costs the server as much as half of the rest, so it is to do that once for each
 * connection. A connection that is used a few times only is not worth it: the first uses go as text.
 */
const TEXT_FIRST = 8

/** Or how often it was sent as text. */
type State = number | 'ready' | 'never'

const states = new WeakMap<CoreConnection, Map<string, State>>()

/** Nothing was done: the server does not know the statement (any more), knows too many, or cannot prepare it. */
const REFUSED = new Set([
  'ER_UNKNOWN_STMT_HANDLER',
  'ER_MAX_PREPARED_STMT_COUNT_REACHED',
  'ER_NEED_REPREPARE',
  'ER_UNSUPPORTED_PS',
])

export function isRefused(error: unknown): boolean {
  return REFUSED.has(codeOf(error))
}

/**
 * Whether to send the statement by its number. If not, it is to be sent as text now; whenever that has become worth it,
 * the connection prepares it afterwards, while nobody waits.
 */
export function isPrepared(connection: CoreConnection, sql: string): boolean {
  let known = states.get(connection)
  if (known === undefined) states.set(connection, (known = new Map<string, State>()))
  const state = known.get(sql) ?? 0
  if (typeof state === 'number') known.set(sql, state + 1)
  return state === 'ready'
}

/** To be called when the text is on its way: what the connection sends next is the question for a number. */
export function prepareAfter(connection: CoreConnection, sql: string): void {
  const known = states.get(connection)
  if (known?.get(sql) !== TEXT_FIRST || typeof connection.prepare !== 'function') return
  connection.prepare(sql, (error) => void known.set(sql, error ? 'never' : 'ready'))
}

export function forgetPrepared(connection: CoreConnection, sql: string): void {
  states.get(connection)?.set(sql, 'never')
}
