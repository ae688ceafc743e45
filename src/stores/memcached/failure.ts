import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import type { Reply } from './protocol.ts'

/** Failures, as answers. Their messages hold what the server or the system said, never a key, an id or a password. */

export class OutOfMemory extends Error {}

const FULL =
  'memcached is out of memory (SERVER_ERROR out of memory). Give it more, or an instance for locks alone.'

/** What an error line of the server means for the request. */
export function refused({ line }: Reply): Unknown {
  if (/out of memory/i.test(line)) {
    return unknown(new OutOfMemory(FULL))
  }
  if (/non-numeric/.test(line)) {
    return unknownForGood(
      new Error(
        'another program keeps something at the key of this lock. Give the store a prefix of its own.',
      ),
    )
  }
  const cause = new Error(`memcached refused the request: ${line.slice(0, 200)}`)
  // An error of ours or of the server's version stays; one of its state may pass.
  return line.startsWith('SERVER_ERROR') ? unknown(cause) : unknownForGood(cause)
}

/** An error of the network or of TLS: its message and code, without the objects that hang on it. */
export function plainError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('the connection to memcached failed')
  const message =
    error.message === '' && error instanceof AggregateError
      ? error.errors.map((one) => plainError(one).message).join('; ')
      : error.message
  const plain = new Error(message)
  const code: unknown = 'code' in error ? error.code : undefined
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}
