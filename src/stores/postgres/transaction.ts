import { codeOf, DatabaseError } from '../sql/failure.ts'
import { SAVEPOINT, statementFailed, transactionEnded } from '../sql/same-transaction.ts'
import type { PostgresClient } from './client.ts'

/**
 * A statement of ours that runs in somebody else's transaction is undone by its ROLLBACK, whatever was answered. The server
 * says after every statement whether the connection is in one (`I` no, `T` yes, `E` it failed), so nobody has to be asked.
 */

// Texts as they come: a program may have told pg to make other things of integers.
export const RAW: { readonly getTypeParser: () => StringConstructor } = { getTypeParser: () => String }

interface Connection {
  prependListener(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
  prependListener(event: 'parameterStatus', listener: (message: Parameter) => void): unknown
}

interface Parameter {
  readonly parameterName?: string
  readonly parameterValue?: string
}

interface Followed {
  status: string | undefined
  utf8: boolean | undefined
}

const followed = new WeakMap<PostgresClient, Followed>()

/** Whether the client is in a transaction; undefined when it cannot be known without asking. */
export function inTransaction(client: PostgresClient): boolean | undefined {
  const status = (followed.get(client) ?? follow(client)).status
  return status === undefined ? undefined : status !== 'I'
}

function follow(client: PostgresClient): Followed {
  // pg itself keeps it from 8.17 on; of a client that was used before we listen we know nothing otherwise.
  const { connection, _txStatus } = client as { connection?: Partial<Connection>; _txStatus?: unknown }
  const state: Followed = {
    status: typeof _txStatus === 'string' ? _txStatus : undefined,
    utf8: undefined,
  }
  if (typeof connection?.prependListener === 'function') {
    // Before pg does, which tells whoever sent the statement.
    connection.prependListener('readyForQuery', ({ status }) => (state.status = status))
    connection.prependListener('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'client_encoding') state.utf8 = parameterValue === 'UTF8'
    })
    followed.set(client, state)
  }
  return state
}

/**
 * Asks. Without values, for so it is one message to the server, which looks at the clock once: a transaction that began
 * with it is exactly as old as the statement.
 */
export async function askInTransaction(client: PostgresClient): Promise<boolean> {
  const text = 'SELECT CASE WHEN now() = statement_timestamp() THEN 1 ELSE 0 END AS alone'
  const { rows } = await client.query({ text, types: RAW })
  return Number((rows[0] as { alone?: unknown } | undefined)?.alone) !== 1
}

/** Whether it is what pg writes and reads, whatever somebody has set since. */
export const IS_UTF8 = `CASE current_setting('client_encoding') WHEN 'UTF8' THEN 1 ELSE 0 END`

/**
 * Refuses a client in another encoding (`SET client_encoding`, for an import): the bytes of a name would be other letters
 * there, and so another name. Each client is asked once; the server tells of every change.
 */
export async function requireUtf8(client: PostgresClient): Promise<void> {
  const state = followed.get(client) ?? follow(client)
  if (state.utf8 === undefined) {
    const { rows } = await client.query({ text: `SELECT ${IS_UTF8} AS utf8`, types: RAW })
    state.utf8 = Number((rows[0] as { utf8?: unknown } | undefined)?.utf8) === 1
  }
  if (!state.utf8) throw new OtherEncoding()
}

/** No transaction, and no such savepoint. */
const ENDED = new Set(['25P01', '3B001'])
const FAILED = '25P02'

export async function begin(client: PostgresClient): Promise<void> {
  await client.query({ text: `BEGIN; SAVEPOINT ${SAVEPOINT}` })
}

/** To COMMIT alone the server does not say no: after a failed statement it rolls back, and in no transaction it warns. */
export async function commit(client: PostgresClient): Promise<void> {
  try {
    await client.query({ text: `RELEASE SAVEPOINT ${SAVEPOINT}; COMMIT` })
  } catch (error) {
    const code = codeOf(error)
    if (code === FAILED) throw statementFailed(error)
    throw ENDED.has(code) ? transactionEnded(error) : error
  }
}

/** `ended`: the transaction that we began was not there any more. */
export async function undo(client: PostgresClient): Promise<'undone' | 'ended' | 'broken'> {
  try {
    await client.query({ text: `ROLLBACK TO SAVEPOINT ${SAVEPOINT}; ROLLBACK` })
    return 'undone'
  } catch (error) {
    const how = ENDED.has(codeOf(error)) ? 'ended' : 'undone'
    return client.query({ text: 'ROLLBACK' }).then(
      () => how,
      () => 'broken',
    )
  }
}

export class InTransaction extends DatabaseError {
  constructor() {
    super(
      'The client is in a transaction, and what is written there, or a lock taken, would be undone by its rollback. Give ' +
        'holdfast a Pool, or a Client of its own',
      'HOLDFAST_AUTOCOMMIT',
    )
  }
}

export class OtherEncoding extends DatabaseError {
  constructor() {
    super(
      'The client was given another encoding than UTF8 (SET client_encoding), in which a name with letters beyond ASCII would ' +
        'be another name than for everybody else. Set it back: RESET client_encoding',
      'HOLDFAST_ENCODING',
    )
  }
}
