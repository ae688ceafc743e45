/**
 * Replies are read, never trusted. A driver can be told to give numbers as strings, strings as Buffers, integers as bigint; a
 * proxy, another program's script or a wrong connection can give anything. What a script of ours did not write, in one of
 * those forms, is an error here, and `unknown` to whoever asked.
 */

/** Of decimal digits without a sign, and not so many that nobody wrote them. */
const WHOLE = /^(?:0|[1-9]\d{0,18})$/
const TOKEN = /^[1-9]\d{0,18}$/

export class UnexpectedReply extends TypeError {}

export function unexpected(): Error {
  return new UnexpectedReply('the server answered with something that no script of this store returns')
}

export function textOf(reply: unknown): string {
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number' || typeof reply === 'bigint' || Buffer.isBuffer(reply)) return String(reply)
  throw unexpected()
}

/** Of exactly so many, if it is said how many. */
export function listOf(reply: unknown, length?: number): readonly unknown[] {
  if (Array.isArray(reply) && (length === undefined || reply.length === length)) return reply
  throw unexpected()
}

/** A number that counts something, or milliseconds. */
export function wholeOf(reply: unknown): number {
  // The usual form first: these are read a hundred thousand times a second.
  if (typeof reply === 'number' && Number.isSafeInteger(reply) && reply >= 0) return reply
  const text = textOf(reply)
  const number = Number(text)
  if (WHOLE.test(text) && Number.isSafeInteger(number)) return number
  throw unexpected()
}

/** Whether a command that answers 1 or 0 did it. */
export function doneOf(reply: unknown): boolean {
  if (reply === 1) return true
  const number = wholeOf(reply)
  if (number > 1) throw unexpected()
  return number === 1
}

export function isCount(reply: unknown): boolean {
  try {
    return wholeOf(reply) >= 0
  } catch {
    return false
  }
}

/** Whether the answer is that there was nothing to do. */
export function isNone(reply: unknown): boolean {
  return reply === 0 || reply === '0' || reply === 0n || (Buffer.isBuffer(reply) && String(reply) === '0')
}

export function tokenOf(reply: unknown): bigint {
  const text = textOf(reply)
  if (TOKEN.test(text)) return BigInt(text)
  throw unexpected()
}
