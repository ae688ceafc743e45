import { InvalidArgumentError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { DEFAULT_PORT } from './wire.ts'

/** Where a lock server listens. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: boolean }
  | { readonly kind: 'unix'; readonly path: string }

export interface ServerAddress {
  readonly address: Address
  /** The bearer token, if the URL has one. */
  readonly token?: string
}

/** Longer ones are cut off without a word, by some versions of Node, and two sockets become one. Linux takes four bytes more than others. */
const LONGEST_SOCKET = process.platform === 'linux' ? 107 : 103

/** Whether the system takes it for a socket's path. */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= LONGEST_SOCKET
}

const UNIX = /^holdfast\+unix:(?!\/\/[^/]+@)(?:\/\/)?(\/[^?#]+)$/i

/** `holdfast://host:7420`, `holdfasts://host:7420` (TLS), `holdfast+unix:/path`. */
export function parseAddress(url: string): ServerAddress {
  const path = UNIX.exec(url)?.[1]
  if (path !== undefined) return { address: { kind: 'unix', path: short(decoded(path, 'path')) } }
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const scheme = parsed?.protocol
  if (parsed === undefined || parsed.hostname === '' || (scheme !== 'holdfast:' && scheme !== 'holdfasts:')) {
    const wanted = 'holdfast://host:port, holdfasts://host:port (TLS) or holdfast+unix:/path'
    throw refused(url, `must look like ${wanted}`)
  }
  const { hostname, port, username, password, pathname, search, hash } = parsed
  // What is not understood is not left out: it would be taken for said.
  if (username !== '' && password === '')
    throw new InvalidArgumentError('url must have the token behind a colon: holdfast://:token@host', {
      argument: 'url',
    })
  if (!['', '/'].includes(pathname) || search !== '' || hash !== '')
    throw refused(url, 'must end with the port: a lock server has no settings in its URL')
  const address: Address = {
    kind: 'tcp',
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? DEFAULT_PORT : Number(port),
    tls: scheme === 'holdfasts:',
  }
  return password === '' ? { address } : { address, token: decoded(password, 'token') }
}

function refused(url: string, problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`url ${problem}; got "${redact(url)}"`, { argument: 'url' })
}

function short(path: string): string {
  if (fitsSocket(path)) return path
  throw new InvalidArgumentError(`A socket's path must have at most ${LONGEST_SOCKET} bytes`, {
    argument: 'url',
  })
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new InvalidArgumentError(`The ${what} in the URL is not well-formed: a % is written %25`, {
      argument: 'url',
    })
  }
}

/** For messages. */
export function showAddress(address: Address): string {
  if (address.kind === 'unix') return `unix:${address.path}`
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}
