import type { IncomingMessage } from 'node:http'

import { InvalidArgumentError } from '../core/errors.ts'
import { WRITE_HEADER } from '../stores/holdfast/wire.ts'
import { Failure } from './failure.ts'
import { MAX_HEADERS } from './http-server.ts'
import { ANYBODY } from './rights.ts'
import type { Principal } from './rights.ts'
import type { Tokens } from './tokens.ts'

export interface GateOptions {
  /** Names that the server answers to besides this machine's own. */
  readonly hosts: readonly string[]
  /** Web pages that may call it. */
  readonly origins: readonly string[]
  readonly tokens: Tokens | null
}

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]']
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]/@\s]+)(?::\d{1,5})?$/i
const BEARER = /^Bearer ([!-~]{1,512})$/

/** A name or an address, as it stands in a Host header, without the port. */
const NAME = /^(\[[0-9a-f:.]+\]|[^:[\]/@\s*]+)$/i
/** Of schemes that have no origin in the eyes of a URL parser. */
const APP = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^/\s*]+$/

/** What no request could ever say would keep everybody out, without a word. */
export function checkHosts(hosts: readonly string[]): void {
  if (hosts.every((host) => NAME.test(host))) return
  const message = 'hosts must be names or addresses, without a port: locks.internal, [fd00::1]'
  throw new InvalidArgumentError(message, { argument: 'hosts' })
}

export function checkOrigins(origins: readonly string[]): void {
  if (origins.every((origin) => APP.test(origin) || originOf(origin) === origin)) return
  const message = 'origins must be as browsers send them: https://app.example.com, http://localhost:3000'
  throw new InvalidArgumentError(message, { argument: 'origins' })
}

function originOf(text: string): string | undefined {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) ? new URL(text).origin : undefined
}

/** What a request must look like before anybody reads what it asks for. */
export class Gate {
  private readonly hosts: ReadonlySet<string>
  private readonly origins: ReadonlySet<string>
  private readonly tokens: Tokens | null

  constructor({ hosts, origins, tokens }: GateOptions) {
    this.hosts = new Set([...LOCAL_NAMES, ...hosts.map((host) => host.toLowerCase())])
    this.origins = new Set(origins)
    this.tokens = tokens
  }

  /**
   * Every request, whatever it asks for. A page on some web site can make a browser send requests here: under a name of
   * its own that it points at this machine (the host tells), or openly (the origin tells). Returns the headers that let
   * an allowed page read the answer.
   */
  assertFromHere(request: IncomingMessage): Readonly<Record<string, string>> | null {
    const { headers, socket } = request
    const incomplete = withoutSomeHeaders(request)
    if (incomplete !== null) throw incomplete
    // Node goes by the first of two; whoever stands in front may have gone by the second.
    if ((request.headersDistinct['host']?.length ?? 0) > 1)
      throw new Failure('WRONG_HOST', 'A request has one Host.')
    const host = HOST.exec(headers.host ?? '')?.[1]?.toLowerCase()
    // A name that somebody points at this machine is not an address of its own: health checks go by that.
    if (host === undefined || !(this.hosts.has(host) || isOwnAddress(host, socket.localAddress))) {
      throw new Failure('WRONG_HOST', 'This lock server does not answer to that Host.')
    }
    const { origin } = headers
    const site = headers['sec-fetch-site']
    if (origin !== undefined && this.origins.has(origin)) return allowing(origin)
    if (origin !== undefined || (site !== undefined && site !== 'same-origin' && site !== 'none')) {
      throw new Failure('WRONG_ORIGIN', 'This lock server does not answer to pages of that origin.')
    }
    return null
  }

  /** The token is taken from its header only: addresses end up in logs and histories. */
  principalOf({ headers }: IncomingMessage): Principal {
    if (this.tokens === null) return ANYBODY
    const token = BEARER.exec(headers.authorization ?? '')?.[1]
    const principal = token === undefined ? null : this.tokens.principalOf(token)
    if (principal === null) throw new Failure('UNAUTHENTICATED', 'A valid bearer token is needed.')
    return principal
  }

  /** What changes something needs a header that no form and no image can send. */
  assertDeliberate({ headers }: IncomingMessage): void {
    if (headers[WRITE_HEADER] === undefined) {
      throw new Failure(
        'HEADER_MISSING',
        'Requests that change something need the header "Holdfast-Request: 1".',
      )
    }
  }

  assertJson({ headers }: IncomingMessage): void {
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
      throw new Failure(
        'UNSUPPORTED_MEDIA_TYPE',
        'The body must be JSON, with "Content-Type: application/json".',
      )
    }
  }
}

/** Null when all of them were seen. Of those that are missing, one may be a second Host, or the length of the body. */
export function withoutSomeHeaders({ rawHeaders }: IncomingMessage): Failure | null {
  if (rawHeaders.length < MAX_HEADERS * 2) return null
  return new Failure('TOO_LARGE', `The request must have less than ${MAX_HEADERS} headers.`)
}

function isOwnAddress(host: string, local: string | undefined): boolean {
  if (local === undefined) return false
  const plain = local.replace(/^::ffff:/, '')
  return host === plain || host === `[${plain}]`
}

/** What a browser has to be told before it lets a page of that origin send, and read. */
function allowing(origin: string): Readonly<Record<string, string>> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': `authorization, content-type, ${WRITE_HEADER}`,
    'access-control-expose-headers': 'retry-after',
    'access-control-max-age': '600',
    vary: 'Origin',
  }
}
