import { createServer as createHttp } from 'node:http'
import type { Server as HttpServer, ServerOptions as HttpOptions } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { Server as HttpsServer, ServerOptions as HttpsOptions } from 'node:https'
import type { Socket } from 'node:net'

import { InvalidArgumentError } from '../core/errors.ts'
import type { Limits } from './limits.ts'
import type { ServerOptions } from './options.ts'

/** How often the timeouts of slow clients are looked at. */
const CHECK_MS = 1000
/** Node forgets those that come after them, without a word. */
export const MAX_HEADERS = 64
const HANDSHAKE_MS = 5000
const STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Node's HTTP server with limits for everything that a client can make long. */
export function makeHttpServer({ tls }: ServerOptions, limits: Limits): HttpServer | HttpsServer {
  const options: HttpOptions = {
    maxHeaderSize: limits.headers,
    headersTimeout: limits.headersTimeout,
    requestTimeout: limits.requestTimeout,
    keepAliveTimeout: limits.keepAlive,
    connectionsCheckingInterval: CHECK_MS,
    insecureHTTPParser: false,
    // The gate looks at it, and what the gate refuses has a turn and is counted.
    requireHostHeader: false,
    noDelay: true,
  }
  const server = tls === undefined ? createHttp(options) : secure({ ...options, ...tls })
  server.maxHeadersCount = MAX_HEADERS
  // Two lengths, a folded header, half a request: whatever it was, nothing more is read from there.
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Before there is a key, nothing that is said would ever be sent.
    if (error.code === 'ECONNRESET' || error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT' || !socket.writable)
      return void socket.destroy()
    const status = STATUS[error.code ?? ''] ?? '400 Bad Request'
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
    socket.destroySoon()
  })
  return server
}

function secure(options: HttpsOptions): HttpsServer {
  try {
    return createHttps({ ...options, handshakeTimeout: HANDSHAKE_MS })
  } catch (cause) {
    throw notAPair(cause)
  }
}

export function notAPair(cause: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'The certificate and the key must be PEM files that belong together. Look at them with: openssl x509 -in FILE -text',
    { argument: 'tls', cause },
  )
}
