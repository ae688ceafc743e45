import { DatabaseError } from './failure.ts'

// Taken once: a user's fake timers must not make anybody wait for ever.
const { setTimeout, clearTimeout } = globalThis

/** Milliseconds. Behind a pooler, the beginning of a transaction may rightly wait in line for many seconds. */
const LATE_MS = 30_000
const LATE_COMMIT_MS = 60_000

/** No answer came, and none will: the connection leads nowhere. */
export class NoAnswer extends DatabaseError {
  constructor(message: string) {
    super(message, 'HOLDFAST_NO_ANSWER')
  }
}

/**
 * What a server answers to a statement around guarded work. On a connection that was forgotten on the way nothing ever comes back, and
 * no driver gives up: the lease would be kept for work that cannot go on, and the connection's place in the pool for ever.
 */
export function answered<T>(statement: Promise<T>): Promise<T> {
  return within(
    LATE_MS,
    statement,
    'The database did not answer within 30 s, before or after the guarded work. Nothing was committed',
  )
}

export function committed<T>(statement: Promise<T>): Promise<T> {
  return within(
    LATE_COMMIT_MS,
    statement,
    'The database did not answer the COMMIT of the guarded work within 60 s. It may have been committed or not: look',
  )
}

function within<T>(ms: number, statement: Promise<T>, message: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new NoAnswer(message)), ms)
    statement.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
