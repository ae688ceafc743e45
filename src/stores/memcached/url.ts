import { InvalidArgumentError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'

/** Where memcached listens. */
export type Address = { readonly host: string; readonly port: number } | { readonly path: string }

export interface ParsedUrl {
  readonly address: Address
  readonly tls: boolean
  readonly user?: string
  readonly password?: string
  readonly prefix?: string
}

const DEFAULT_PORT = 11_211
/** A comma between hosts, and not in a password. */
const SEVERAL = /^memcacheds?:\/\/(?:[^/]*@)?[^/@?#]*,[^/@?#]*(?:[/?#]|$)/i

/** `memcached://host:11211`, `memcacheds://host` (TLS), `memcached:///run/memcached.sock`, with `user:password@` for a server with -Y, and `?prefix=shop:`. */
export function parseUrl(url: string): ParsedUrl {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const scheme = parsed?.protocol
  if (SEVERAL.test(url)) return refuse(url, several)
  if (parsed === undefined || (scheme !== 'memcached:' && scheme !== 'memcacheds:'))
    return refuse(url, wanted)
  const { username, password, pathname, search, hash } = parsed
  // A plus is a plus, as before the host.
  const searchParams = new URLSearchParams(search.replaceAll('+', '%2B'))
  if (![username, password, pathname].every(isEscaped)) return refuse(url, escapes)
  const address = addressOf(parsed)
  if (address === undefined) return refuse(url, wanted)
  // What is not understood is not left out: two processes that mean the same lock would not meet.
  if (hash !== '' || [...searchParams.keys()].some((name) => name !== 'prefix')) return refuse(url, settings)
  const prefix = searchParams.get('prefix')
  return {
    address,
    tls: scheme === 'memcacheds:',
    ...(username === '' ? {} : { user: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(prefix === null ? {} : { prefix }),
  }
}

const wanted =
  'url must look like memcached://host:port, memcacheds://host:port (TLS) or memcached:///path/to.sock'
const settings = 'url must have no setting but ?prefix=; the others are options of memcachedStore()'
const escapes = 'url must have a % as %25'
const several =
  'url must name one server: a lock that moves between servers when their list changes can be held twice'

function isEscaped(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function refuse(url: string, problem: string): never {
  throw new InvalidArgumentError(`${problem}; got "${redact(url)}"`, { argument: 'url' })
}

function addressOf({ hostname, port, pathname }: URL): Address | undefined {
  if (hostname === '') return pathname.length > 1 ? { path: decodeURIComponent(pathname) } : undefined
  if (pathname !== '' && pathname !== '/') return undefined
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? DEFAULT_PORT : Number(port) }
}
