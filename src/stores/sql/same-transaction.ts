import { InvalidArgumentError } from '../../core/errors.ts'

/**
 * A guarded transaction begins with this savepoint, which ends with it, in whatever way it does. As long as it is there the
 * work is in the transaction that is guarded, and in no later one.
 */
export const SAVEPOINT = 'holdfast_guarded'

/** The savepoint was gone. */
export function transactionEnded(cause: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'The guarded transaction was over before its work was. The work ended it, or a statement that commits unasked did ' +
      '(MySQL: CREATE, ALTER, DROP, LOCK TABLES), or the server undid it (a deadlock) and the work went on. What was ' +
      'written may be there in part, unguarded: look. Leave the end to guarded, and let errors out of the work',
    { argument: 'work', cause },
  )
}

/** PostgreSQL: it is there, but the server does not commit. */
export function statementFailed(cause: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'A statement failed inside of the guarded work, which went on; the server commits nothing after that. Nothing was ' +
      'committed. Let the error out of the work, or put a savepoint before a statement that may fail',
    { argument: 'work', cause },
  )
}

export function outsideTransaction(cause?: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'guard checks a transaction, and this connection is in none: begin one first, or use guarded',
    { argument: 'tx', ...(cause === undefined ? {} : { cause }) },
  )
}

export function onOtherServer(): InvalidArgumentError {
  return new InvalidArgumentError(
    'The transaction is on another server than the lock, which cannot guard it: guard a transaction on the server of the store',
    { argument: 'tx' },
  )
}

/**
 * Runs work with a connection that it cannot give back: whoever got it next would be in the middle of this transaction.
 * With connections of a pool it is a habit to do so at the end.
 */
export async function keeping<C extends object, T>(
  connection: C,
  work: (connection: C) => Promise<T>,
): Promise<T> {
  const own = Object.getOwnPropertyDescriptor(connection, 'release')
  const refuse = (): never => {
    throw new InvalidArgumentError(
      'The connection of a guarded transaction is given back by guarded: the work must not. Nothing was committed',
      { argument: 'work' },
    )
  }
  Object.defineProperty(connection, 'release', { value: refuse, configurable: true, writable: true })
  try {
    return await work(connection)
  } finally {
    if (own === undefined) Reflect.deleteProperty(connection, 'release')
    else Object.defineProperty(connection, 'release', own)
  }
}
