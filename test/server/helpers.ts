import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach } from 'vitest'

import { startServer } from '../../src/server/index.ts'
import type { RunningServer, ServerOptions } from '../../src/server/index.ts'

const undo: (() => unknown)[] = []

/** Runs after the test, in reverse order. */
export function afterwards(step: () => unknown): void {
  undo.push(step)
}

afterEach(async () => {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step()
})

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-server-'))
  afterwards(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A server on a free port of this machine, gone after the test. */
export async function serve(options: ServerOptions = {}): Promise<RunningServer> {
  const server = await startServer({ listen: '127.0.0.1:0', ...options })
  afterwards(() => server.close({ grace: 50 }))
  return server
}

export const portOf = ({ address }: RunningServer): number => Number(address.split(':').at(-1))

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The body, if it is JSON. */
  readonly body: Readonly<Record<string, never>> & {
    readonly error: { readonly code: string; readonly message: string }
  }
}

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly socketPath?: string
}

/** One request as a careful client sends it; headers may be replaced, or left out with an empty value. */
export function call(server: RunningServer, line: string, options: CallOptions = {}): Promise<Answer> {
  const [method = 'GET', path = '/'] = line.split(' ')
  const { body, headers = {}, signal, socketPath } = options
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const all: Record<string, string> =
    method === 'POST' ? { 'content-type': 'application/json', 'holdfast-request': '1' } : {}
  Object.assign(all, headers)
  for (const [name, value] of Object.entries(all)) if (value === '') delete all[name]
  return new Promise((resolve, reject) => {
    const where = socketPath === undefined ? { host: '127.0.0.1', port: portOf(server) } : { socketPath }
    const sent = request(
      { ...where, method, path, headers: all, agent: false, ...(signal === undefined ? {} : { signal }) },
      (response) => {
        let received = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (received += chunk))
        response.on('error', reject)
        response.on('end', () => {
          const { statusCode = 0, headers: got } = response
          resolve({ status: statusCode, headers: got, text: received, body: parse(received) })
        })
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

function parse(text: string): Answer['body'] {
  try {
    return JSON.parse(text) as Answer['body']
  } catch {
    return {} as Answer['body']
  }
}

/** Sends bytes as they are and collects what comes back until the server ends the connection, or `until` is seen. */
export function raw(server: RunningServer, bytes: string, until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(portOf(server), '127.0.0.1', () => socket.write(bytes))
    let received = ''
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      received += text
      if (until !== undefined && received.includes(until)) socket.destroy()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
  })
}

/** Takes a lock, and must get it. */
export async function take(
  server: RunningServer,
  body: Record<string, unknown>,
): Promise<{ lease: string; token: bigint }> {
  const { status, body: granted, text } = await call(server, 'POST /v1/acquire', { body })
  if (status !== 200) throw new Error(`not granted: ${text}`)
  const { lease, token } = granted as unknown as { lease: string; token: string }
  return { lease, token: BigInt(token) }
}

/** Who holds and who waits for a name. */
export async function look(
  server: RunningServer,
  name: string,
): Promise<{ holders: unknown[]; waiters: unknown[] }> {
  const { body } = await call(server, `GET /v1/locks/${encodeURIComponent(name)}`)
  return body as unknown as { holders: unknown[]; waiters: unknown[] }
}

/** Asks until the check holds. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  within = 5000,
): Promise<void> {
  const end = performance.now() + within
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`not within ${within} ms: ${what}`)
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
}

/** Follows an event stream; what was heard so far is in `text`. */
export async function listen(
  server: RunningServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly text: string; readonly ended: boolean }> {
  const heard = { text: '', ended: false }
  const stream = request(
    { host: '127.0.0.1', port: portOf(server), path, headers, agent: false },
    (response) => {
      response.setEncoding('utf8')
      response.on('data', (text: string) => (heard.text += text))
      response.on('error', () => undefined)
      response.on('end', () => (heard.ended = true))
    },
  )
  stream.on('error', () => undefined)
  stream.end()
  afterwards(() => stream.destroy())
  await eventually('it listens', () => heard.text.includes('watching'))
  return heard
}
