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
  return `v${at}:${codec.encode(value)}`
}

/** Null if there is nothing, or nothing that can be read: it will be loaded and overwritten. */
export function decodeEntry<V>(
  text: string | null | undefined,
  codec: Codec<NonNullable<V>>,
): Entry<V> | null {
  const header = typeof text === 'string' ? HEADER.exec(text) : null
  if (header === null || header[1] === 'x') return null
  const refreshAt = header[2] === '' ? Infinity : Number(header[2])
  if (header[1] === 'n') return { value: null as V, refreshAt }
  if (header[1] === 'u') return { value: undefined as V, refreshAt }
  try {
    return { value: codec.decode((text as string).slice(header[0].length)), refreshAt }
  } catch {
    return null
  }
}
