import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'

/**
 * What went wrong, without what must not be shown: drivers hang the statement, with every value in it, and sometimes
 * the connection's settings on their errors. Only the message and the code are taken over.
 */
export class DatabaseError extends Error {
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.name = 'DatabaseError'
    this.code = code
  }
}

/** What to ask of it again is in vain. */
export const POOL_ENDED: DatabaseError = new DatabaseError(
  'The pool was ended, and gives no connections any more. Close what takes locks there first: `holdfast.close()`, then end ' +
    'the pool',
  'HOLDFAST_ENDED',
)

/** A single connection is not made anew. */
export const CONNECTION_ENDED: DatabaseError = new DatabaseError(
  'The connection is over, and nobody makes another one. Pass a pool, which makes them anew',
  'HOLDFAST_ENDED',
)

export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}

/** Whether a server said it: five characters, and a digit among them. EPIPE has five, too, and comes from the connection. */
export const isSqlState = (code: string): boolean => /^(?=.*\d)[0-9A-Z]{5}$/.test(code)

/** After a failover connections may lead to the old server still, which only reads from then on, for as long as they are used. */
const READ_ONLY = new Set([
  '25006',
  'ER_OPTION_PREVENTS_STATEMENT',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_READ_ONLY_MODE',
])

export const isReadOnly = (error: unknown): boolean => READ_ONLY.has(codeOf(error))

/** Tables locked, or another role: what somebody may have left on a connection, and the next one to get it would hear, too. */
const LEFT = new Set([
  '42501',
  'ER_TABLEACCESS_DENIED_ERROR',
  'ER_TABLE_NOT_LOCKED',
  'ER_TABLE_NOT_LOCKED_FOR_WRITE',
])

/** Whether a connection is of no use for locks, though it answers. */
export const isUnfit = (error: unknown): boolean => isReadOnly(error) || LEFT.has(codeOf(error))

/** Whether the server said no to a statement, and so did nothing of it: not that the connection is of no use any more. */
export const isRefusal = (error: unknown): boolean => {
  const code = codeOf(error)
  if (isUnfit(error)) return false
  return (
    (isSqlState(code) && !/^(08|57)/.test(code)) || /^ER_(?!SERVER_SHUTDOWN|QUERY_INTERRUPTED)/.test(code)
  )
}

export function failed(error: unknown, isFinal: (code: string) => boolean): Unknown {
  const code = codeOf(error)
  const message =
    error instanceof Error && error.message !== '' ? error.message : `The database failed ${code}`.trim()
  const cause = new DatabaseError(message, code)
  return isFinal(code) || code.startsWith('HOLDFAST_') ? unknownForGood(cause) : unknown(cause)
}
