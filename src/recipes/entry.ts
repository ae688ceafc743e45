import type { Codec } from './cache.ts'

/**
 * What stands in the cache: one letter for the kind, the wall time from which on a refresh is wanted, a colon, the value.
 * An end of its life is not in it: the cache forgets it, by one clock for all, while readers' wall clocks differ. A
 * refresh that comes too early or too late for a fast or slow clock does little harm.
 */
export interface Entry<V> {
  readonly value: V
  /** Wall time in milliseconds. */
  readonly refreshAt: number
}

const HEADER = /^([vnux])(\d*):/
/** Reads like nothing at all. For caches that keep the token with the text, and so must not lose the text. */
export const FORGOTTEN = 'x:'

/** An empty result is kept as a marker that also tells which of the two it was. */
export function encodeEntry<V>({ value, refreshAt }: Entry<V>, codec: Codec<NonNullable<V>>): string {
  const at = refreshAt === Infinity ? '' : String(Math.round(refreshAt))
  if (value === null) return `n${at}:`
  if (value === undefined) return `u${at}:`
  const text: unknown = codec.encode(value)
  // JSON has no text for a function or a symbol.
  if (typeof text !== 'string') throw new TypeError(`The codec made no text of a ${typeof value}`)
  return `v${at}:${text}`
}

/** Null if there is nothing. Throws if there is something that cannot be read. */
export function decodeEntry<V>(
  text: string | null | undefined,
  codec: Codec<NonNullable<V>>,
): Entry<V> | null {
  if (text === null || text === undefined) return null
  const header = typeof text === 'string' ? HEADER.exec(text) : null
  if (header === null) throw new TypeError('What stands in the cache was not written by cached()')
  if (header[1] === 'x') return null
  const refreshAt = header[2] === '' ? Infinity : Number(header[2])
  if (header[1] === 'n') return { value: null as V, refreshAt }
  if (header[1] === 'u') return { value: undefined as V, refreshAt }
  return { value: codec.decode(text.slice(header[0].length)), refreshAt }
}
