/**
 * Where a name lives. All keys of a name share a hash tag, so that a Cluster keeps them together, and the tag is the
 * whole encoded name: no two names share a key, and none can smuggle a brace in.
 */

const RESERVED = /[{}%]/
const EVERY_RESERVED = /[{}%]/g
const CODES: Readonly<Record<string, string>> = { '{': '%7B', '}': '%7D', '%': '%25' }

function encode(name: string): string {
  // Most names have nothing to encode: a test is cheaper than a replacement that finds nothing.
  return RESERVED.test(name) ? name.replace(EVERY_RESERVED, (char) => CODES[char] ?? char) : name
}

function decode(tag: string): string {
  return tag.replace(/%(7B|7D|25)/g, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
}

/** The key that is always there while a name is in use; scripts/lib/header.lua says what it holds. */
export function headerKey(prefix: string, name: string): string {
  return `${prefix}:{${encode(name)}}`
}

/** The three keys of a name, in the order in which every script takes them. */
export function keysOf(prefix: string, name: string): [header: string, index: string, records: string] {
  const header = headerKey(prefix, name)
  return [header, `${header}:i`, `${header}:r`]
}

export type NameKeys = ReturnType<typeof keysOf>

/** So many names are remembered. */
const MOST_NAMES = 256

/**
 * The keys of the names that were used last. Made anew for a claim and again for its release, and made flat by the driver, which counts their
 * bytes, they cost about a thirtieth of the client's time.
 */
export class RecentKeys {
  private readonly prefix: string
  private readonly known = new Map<string, NameKeys>()

  constructor(prefix: string) {
    this.prefix = prefix
  }

  of(name: string): NameKeys {
    const known = this.known.get(name)
    if (known !== undefined) return known
    if (this.known.size >= MOST_NAMES) this.known.clear()
    const keys = keysOf(this.prefix, name)
    this.known.set(name, keys)
    return keys
  }
}

/** The name behind a header's key, whatever a driver put before it; `undefined` for any other key. */
export function nameOfHeader(key: string): string | undefined {
  if (!key.endsWith('}')) return undefined
  return decode(key.slice(key.lastIndexOf('{') + 1, -1))
}

/** A SCAN pattern for the headers of names that begin with `start`. */
export function headerPattern(prefix: string, start: string): string {
  const literal = `${prefix}:{${encode(start)}`
  return `${literal.replace(/[\\*?[\]^-]/g, String.raw`\$&`)}*}`
}

/** Where a session is told things. The scripts make the same of a header's key and a claim's id. */
export function channelOf(prefix: string, session: string): string {
  return `${prefix}:s:${session}`
}

/** The mark of durable fencing; see durable.ts. */
export function markKey(prefix: string): string {
  return `${prefix}:durable`
}
