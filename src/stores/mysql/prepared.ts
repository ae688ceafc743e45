import { codeOf } from '../sql/failure.ts'
import type { CoreConnection, CoreStatement } from './core-pool.ts'

/**
 * To parse the statements that take and free a name is a quarter of the server's work for them, so it is to do that once
 * for each connection. One that is used a few times only is not worth it: the first uses go as text.
 */
const TEXT_FIRST = 8

/** How often it was sent as text; or what the driver knows it by; or that there is no use. */
type State = number | CoreStatement | 'never'

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
 * The statement, if this connection has it prepared. If not, it is to be sent as text now; whenever it has become worth
 * it, the connection prepares it afterwards, while nobody waits.
 */
export function preparedOn(connection: CoreConnection, sql: string): CoreStatement | undefined {
  let known = states.get(connection)
  if (known === undefined) states.set(connection, (known = new Map<string, State>()))
  const state = known.get(sql) ?? 0
  if (typeof state === 'object') return state
  if (typeof state === 'number') known.set(sql, state + 1)
  return undefined
}

/** To be called when the text is on its way: what the connection sends next is the question for a number. */
export function prepareAfter(connection: CoreConnection, sql: string): void {
  const known = states.get(connection)
  if (known?.get(sql) !== TEXT_FIRST || typeof connection.prepare !== 'function') return
  connection.prepare(sql, (error, statement) => {
    known.set(sql, error ? 'never' : statement)
    if (!error) tellOfTheEnd(statement, () => known.set(sql, 'never'))
  })
}

export function forgetPrepared(connection: CoreConnection, sql: string): void {
  states.get(connection)?.set(sql, 'never')
}

/**
 * The driver closes a statement that has no room in its cache, and all of them when the connection is reset or given to
 * another user. (`connection.execute` looks into that cache every time, and so counts as two commands.)
 */
function tellOfTheEnd(statement: CoreStatement, tell: () => void): void {
  const close = statement.close.bind(statement)
  statement.close = () => {
    tell()
    return close()
  }
}
