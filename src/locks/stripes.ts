import { InvalidArgumentError } from '../core/errors.ts'

/** FNV-1a over UTF-16 units. Part of the lock's identity: processes of all versions must agree on it for ever. */
export function stripeOf(key: string, stripes: number): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  // The low bits alone are poor; mixing makes every bit depend on the whole key.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return ((hash ^ (hash >>> 13)) >>> 0) % stripes
}

/** A key as text. Numbers mean their digits; what has no text of its own would put every key on one stripe. */
export function keyText(key: string | number | bigint): string {
  if (typeof key === 'string') return key
  if (typeof key === 'bigint' || Number.isFinite(key)) return String(key)
  const message = 'key must be a string or a number: every other value would fall on the same stripe'
  throw new InvalidArgumentError(message, { argument: 'key' })
}
