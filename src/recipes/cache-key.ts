import { createHash } from 'node:crypto'
import { checkName } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'

/** How a key of the cache follows from what is asked for, and the name of its lock. */

export type KeyOption<A> = string | ((input: A) => string)

/** What becomes of an object that is put into a text without saying how: a promise, a request and a map have a word of their own. */
const ANY_OBJECT = /\[object [\w$ ]+\]/

/** A key that is the same for different inputs would serve one user's value to another: refused where it shows. */
export function keyFor<A>(key: KeyOption<A>, input: A): string {
  if (typeof key === 'string') {
    if (input === undefined) return key
    throw wrongKey(
      'is one text for whatever is asked for; make it a function: (input) => `product:${input.id}`',
    )
  }
  const text: unknown = key(input)
  if (typeof text !== 'string') {
    const got = typeof text === 'object' && text !== null ? 'an object' : String(text)
    throw wrongKey(`must return a string, such as \`product:\${id}\`; got ${got}`)
  }
  const [object] = ANY_OBJECT.exec(text) ?? []
  if (object !== undefined) {
    throw wrongKey(
      `must not contain "${object}", which every such object is; use its id, or JSON.stringify, and await a promise`,
    )
  }
  return text
}

function wrongKey(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`key ${problem}`, { argument: 'key' })
}

/** Caches take keys of any length and kind, locks do not: then the lock has a hash of the key in its name. */
export function lockNameFor(key: string): string {
  const name = `cache:${key}`
  try {
    checkName(name)
    return name
  } catch {
    return `cache:sha256:${createHash('sha256').update(key, 'utf16le').digest('base64url')}`
  }
}
