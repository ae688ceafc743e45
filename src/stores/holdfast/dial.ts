import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'

import { showAddress } from './url.ts'
import type { Address } from './url.ts'
import { RefusedError } from './refused.ts'
import { PROTOCOL, SESSION_PATH, WRITE_HEADER } from './wire.ts'

export interface DialOptions {
  readonly address: Address
  readonly token: string | undefined
  /** Certificates to trust instead of the system's, as PEM. */
  readonly ca: string | undefined
}

export interface Dialled {
  readonly socket: Socket
  /** What the server said in the same packet as its consent. */
  readonly head: Buffer
}

/** Answers that come from who and where we are, not from how the server feels just now. */
const FINAL = new Set([400, 401, 403, 404, 405, 421, 426])
const MAX_REFUSAL = 4096

/** One attempt to open a session. `signal` ends it. */
export async function dial({ address, token, ca }: DialOptions, signal: AbortSignal): Promise<Dialled> {
  const where: RequestOptions =
    address.kind === 'unix'
      ? { socketPath: address.path, host: 'localhost' }
      : { host: address.host, port: address.port }
  const headers: Record<string, string> = { connection: 'Upgrade', upgrade: PROTOCOL, [WRITE_HEADER]: '1' }
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`
  const options = { ...where, path: SESSION_PATH, headers, agent: false, signal, setHost: true }
  // Loaded when needed: it takes a command longer to start than everything else here.
  const https = address.kind === 'tcp' && address.tls ? await import('node:https') : null
  // A newer Node loads all of `fetch` for whoever imports it: 20 ms.
  const http = process.getBuiltinModule('node:http')
  return new Promise((resolve, reject) => {
    const request =
      https === null ? http.request(options) : https.request(ca === undefined ? options : { ...options, ca })
    request.on('upgrade', ({ headers: agreed }: IncomingMessage, socket: Socket, head: Buffer) => {
      // Whatever becomes of it: nobody listens to the socket yet.
      socket.on('error', () => undefined)
      if (agreed.upgrade?.toLowerCase() === PROTOCOL) {
        socket.setNoDelay(true)
        return resolve({ socket, head })
      }
      socket.destroy()
      const message = `What answers at ${showAddress(address)} is no lock server of this version (${PROTOCOL})`
      reject(new RefusedError(message, { retryable: false }))
    })
    request.on('response', (response) => {
      readRefusal(response, (words, code) => {
        const { statusCode = 0 } = response
        const said = words === '' ? `status ${statusCode}` : words
        const message = `The lock server at ${showAddress(address)} refused: ${said}`
        reject(new RefusedError(message, { retryable: !FINAL.has(statusCode), code }))
      })
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      const why = error.code ?? error.name
      reject(new Error(`The lock server at ${showAddress(address)} cannot be reached (${why})`))
    })
    request.end()
  })
}

function readRefusal(response: IncomingMessage, done: (words: string, code?: string) => void): void {
  let text = ''
  const end = (): void => {
    try {
      const said = JSON.parse(text) as { error?: { message?: unknown; code?: unknown } } | null
      const { message, code } = said?.error ?? {}
      done(typeof message === 'string' ? message : '', typeof code === 'string' ? code : undefined)
    } catch {
      done('')
    }
  }
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    if (text.length < MAX_REFUSAL) return
    // A refusal is short. Somebody else's page may have no end.
    end()
    response.destroy()
  })
  response.on('error', () => done(''))
  response.on('end', end)
}
