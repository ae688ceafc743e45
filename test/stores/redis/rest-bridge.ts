import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { Redis } from 'ioredis'

type Command = readonly string[]

/** What is to happen to a request instead of, or after, being carried out. */
export type Mishap =
  | { readonly status: number; readonly body: string }
  /** The connection ends, before the commands are carried out or afterwards; or nothing is ever said. */
  | 'lost-request'
  | 'lost-reply'
  | 'silence'

export interface RestBridge extends AsyncDisposable {
  readonly url: string
  readonly host: string
  readonly port: number
  readonly token: string
  /** Every command that was carried out. */
  readonly commands: Command[]
  /** Asked about each request. */
  mishap: (commands: readonly Command[]) => Mishap | undefined
}

/** Redis over HTTP, as the client of Upstash expects it: a command, or a pipeline of them, in the body of a POST. */
export async function restBridge(redis: {
  readonly host: string
  readonly port: number
}): Promise<RestBridge> {
  const token = 'c2VjcmV0LXRva2Vu'
  const client = new Redis({ ...redis, maxRetriesPerRequest: 1 })
  client.on('error', () => {})

  const resultOf = async ([name = '', ...args]: Command): Promise<
    { result: unknown } | { error: string }
  > => {
    bridge.commands.push([name, ...args])
    try {
      return { result: await client.call(name, ...args) }
    } catch (error) {
      return { error: (error as Error).message }
    }
  }

  const server = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      if (request.headers.authorization !== `Bearer ${token}`)
        return answer(response, 401, { error: 'WRONGPASS invalid or missing http auth token' })
      const piped = request.url?.endsWith('/pipeline') === true
      const commands = (piped ? JSON.parse(body) : [JSON.parse(body)]) as unknown[][]
      const texts = commands.map((words) => words.map(String))
      const mishap = bridge.mishap(texts)
      if (mishap === 'silence') return
      if (mishap === 'lost-request') return void response.destroy()
      if (typeof mishap === 'object') return void response.writeHead(mishap.status).end(mishap.body)
      const results = await Promise.all(texts.map(resultOf))
      if (mishap === 'lost-reply') return void response.destroy()
      const encoded = request.headers['upstash-encoding'] === 'base64' ? results.map(inBase64) : results
      const [first] = encoded
      if (piped) return answer(response, 200, encoded)
      answer(response, first !== undefined && 'error' in first ? 400 : 200, first)
    })().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const bridge: RestBridge = {
    url: `http://127.0.0.1:${port}`,
    host: '127.0.0.1',
    port,
    token,
    commands: [],
    mishap: () => undefined,
    async [Symbol.asyncDispose]() {
      client.disconnect()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  return bridge
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const inBase64 = (reply: { result: unknown } | { error: string }): { result: unknown } | { error: string } =>
  'error' in reply ? reply : { result: encode(reply.result) }

function encode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(encode)
  return typeof value === 'string' && value !== 'OK' ? Buffer.from(value).toString('base64') : value
}
