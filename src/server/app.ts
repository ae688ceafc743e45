import { randomBytes } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { KEEP_PATH } from '../stores/holdfast/wire.ts'
import { readJson } from './body.ts'
import type { Caller } from './caller.ts'
import type { Connections } from './connections.ts'
import { Failure, REFUSALS } from './failure.ts'
import type { Gate } from './gate.ts'
import type { Limits } from './limits.ts'
import { networkOf } from './network.ts'
import type { Outbox } from './outbox.ts'
import { RateLimit } from './rate.ts'
import { NOBODY } from './rights.ts'
import type { Principal } from './rights.ts'
import type { Call, Reply, Route } from './route.ts'
import { Turns } from './turns.ts'

export interface AppParts {
  readonly gate: Gate
  readonly routes: readonly Route[]
  readonly limits: Limits
  readonly connections: Connections
  readonly outbox: Outbox
  readonly onRequest: (status: number) => void
  readonly onRefusal: (caller: Caller, what: string, failure: Failure) => void
  /** Something that should not happen. */
  readonly onFault: (error: unknown, request: string) => void
}

/** Of a path, in the audit log. */
const LONGEST_WHAT = 200
/** No status of HTTP's, but the one that is used for it in logs. */
const HUNG_UP = 499
const NAMED = '/{name}'
/** Keeping and giving back, and nothing else. */
const BACK = new Set(['/v1/release', '/v1/renew', KEEP_PATH])
/** As Node tells the one expectation that there is from all others. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

/** From a request to its route, past the gate. No framework: there are a dozen routes, and the hot path is not HTTP. */
export class App {
  private readonly gate: Gate
  private readonly routes = new Map<string, Route[]>()
  private readonly named: readonly Route[]
  private readonly limits: Limits
  private readonly connections: Connections
  private readonly outbox: Outbox
  private readonly turns = new Turns()
  private readonly rate: RateLimit
  private readonly onRequest: AppParts['onRequest']
  private readonly onRefusal: AppParts['onRefusal']
  private readonly onFault: AppParts['onFault']
  private readonly run = randomBytes(4).toString('hex')
  private count = 0

  constructor({ gate, routes, limits, connections, outbox, ...told }: AppParts) {
    this.gate = gate
    this.limits = limits
    this.connections = connections
    this.outbox = outbox
    this.onRequest = told.onRequest
    this.onRefusal = told.onRefusal
    this.onFault = told.onFault
    this.rate = new RateLimit(limits.requestsPerSecond)
    this.named = routes.filter(({ path }) => path.endsWith(NAMED))
    for (const route of routes) {
      if (!route.path.endsWith(NAMED))
        this.routes.set(route.path, [...(this.routes.get(route.path) ?? []), route])
    }
  }

  /** Also for requests that expect something, which Node would otherwise answer by itself, whatever they are. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    this.turns.take(request, () => this.serve(request, response))
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const id = this.nextId()
    response.once('close', () => this.turns.done(request.socket))
    this.answer(request, response, id).then(
      (reply) => {
        if (reply !== null) this.send(response, reply)
      },
      (error: unknown) => this.fail(response, this.noted(request, error, id)),
    )
  }

  /** An answer is under way there. */
  isBusy(socket: Socket): boolean {
    return this.turns.isBusy(socket)
  }

  /** The same gate for who wants to leave HTTP. Answers for itself, and returns null, if it does not open. */
  admit(request: IncomingMessage, socket: Duplex): Caller | null {
    const id = this.nextId()
    try {
      // Answers that are still under way would end up in the middle of what comes now.
      if (this.turns.isBusy(request.socket))
        throw new Failure('INVALID_ARGUMENT', 'Wait for the answers to earlier requests before an upgrade.')
      this.gate.assertFromHere(request)
      const caller = this.identify(request, id)
      this.gate.assertDeliberate(request)
      return caller
    } catch (error) {
      this.refuse(socket, this.noted(request, error, id))
      return null
    }
  }

  /** Says no on a bare socket. */
  refuse(socket: Duplex, failure: Failure): void {
    const body = JSON.stringify(bodyOf(failure))
    const headers = {
      ...headersOf(failure),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(
      `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status] ?? ''}\r\n${lines.join('')}\r\n${body}`,
    )
  }

  private async answer(
    request: IncomingMessage,
    response: ServerResponse,
    id: string,
  ): Promise<Reply | null> {
    const allowed = this.gate.assertFromHere(request)
    if (allowed !== null) for (const [name, value] of Object.entries(allowed)) response.setHeader(name, value)
    const expected = expectationOf(request)
    if (expected === 'other') {
      this.stranger(request, id)
      throw new Failure('EXPECTATION_FAILED', 'Leave the Expect header out.')
    }
    if (allowed !== null && request.method === 'OPTIONS') return { status: 204, body: '', type: 'text/plain' }
    // By hand: a URL parser would take the dots out of a lock's name.
    const [path = '', query = ''] = (request.url ?? '/').split(/\?(.*)/s)
    const { route, rest } = this.find(request.method ?? '', path)
    // Who hangs up while it waits got no answer.
    response.once('close', () => this.onRequest(response.headersSent ? response.statusCode : HUNG_UP))
    const caller = route.access === 'anybody' ? this.stranger(request, id) : this.identify(request, id)
    const { socket } = request
    const leaving = new Set<() => void>()
    // Before the body: whoever sends it slowly must not be served by a token that was taken away meanwhile.
    const { whenChanged } = caller.principal
    const cut = (): void => void socket.destroy()
    if (route.access === 'principals') whenChanged.add(cut)
    response.once('close', () => {
      whenChanged.delete(cut)
      this.connections.rest(socket)
      for (const leave of leaving) leave()
    })
    let body: unknown
    if (route.method === 'POST') {
      this.gate.assertDeliberate(request)
      this.gate.assertJson(request)
      if (expected === 'continue') response.writeContinue()
      body = await readJson(request, this.limits.body)
    }
    if (route.access === 'principals') this.connections.busy(socket)
    const call: Call = {
      caller,
      query: new URLSearchParams(query),
      rest,
      body,
      request,
      response,
      onGone: (leave) => void leaving.add(leave),
    }
    return route.handle(call)
  }

  private find(method: string, path: string): { route: Route; rest: string } {
    const exact = this.routes.get(path)
    const named =
      exact === undefined
        ? this.named.filter(({ path: p }) => path.startsWith(p.slice(0, -NAMED.length + 1)))
        : []
    const candidates = exact ?? named
    // Node leaves the body out by itself.
    const wanted = method === 'HEAD' && path !== '/v1/events' ? 'GET' : method
    const route = candidates.find((one) => one.method === wanted)
    if (route !== undefined) {
      return {
        route,
        rest: exact === undefined ? decode(path.slice(route.path.length - NAMED.length + 1)) : '',
      }
    }
    if (candidates.length === 0)
      throw new Failure('NOT_FOUND', 'There is nothing here. See /v1/openapi.json.')
    const allowed = candidates.map((one) => one.method).join(', ')
    throw new Failure('METHOD_NOT_ALLOWED', `Use ${allowed}.`, { fields: { allowed } })
  }

  private stranger(request: IncomingMessage, id: string): Caller {
    const remote = remoteOf(request.socket)
    this.limitRate(`|${networkOf(remote)}`)
    return { principal: NOBODY, remote, request: id }
  }

  private identify(request: IncomingMessage, id: string): Caller {
    const remote = remoteOf(request.socket)
    try {
      const principal = this.gate.principalOf(request)
      // Keeping and giving back have as much room again: who may take two thousand may give back two thousand.
      const kind = BACK.has(request.url ?? '') ? 'back' : ''
      this.limitRate(`${principal.name}|${networkOf(remote)}|${kind}`)
      return { principal, remote, request: id }
    } catch (failure) {
      // Guessing costs, too.
      if (failure instanceof Failure && failure.code === 'UNAUTHENTICATED')
        this.limitRate(`|${networkOf(remote)}`)
      throw failure
    }
  }

  private limitRate(key: string): void {
    const pause = this.rate.take(key)
    if (pause === 0) return
    const retryAfter = Math.max(1, Math.ceil(pause / 1000))
    throw new Failure('RATE_LIMITED', `At most ${this.limits.requestsPerSecond} requests a second.`, {
      retryAfter,
    })
  }

  private send(response: ServerResponse, { status, body, type, headers, undelivered }: Reply): void {
    // What is written to a socket that is gone counts as written.
    if (response.destroyed || response.headersSent || response.req.socket.destroyed) return undelivered?.()
    if (undelivered !== undefined) {
      response.once('close', () => {
        if (!response.writableFinished) undelivered()
      })
    }
    const text = type === undefined ? `${JSON.stringify(body)}\n` : String(body)
    response.writeHead(status, {
      'content-type': type ?? 'application/json',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    })
    const { socket } = response
    response.end(text)
    if (socket !== null) this.outbox.wrote(socket)
  }

  /** What went wrong, as it may be said; and for those who look after the server, as it was. */
  private noted(request: IncomingMessage, error: unknown, id: string): Failure {
    if (!(error instanceof Failure)) {
      this.onFault(error, id)
      return internal(id)
    }
    if (!REFUSALS.has(error.code)) return error
    const caller: Caller = { principal: this.nameOf(request), remote: remoteOf(request.socket), request: id }
    this.onRefusal(caller, `${request.method ?? ''} ${(request.url ?? '').slice(0, LONGEST_WHAT)}`, error)
    return error
  }

  private nameOf(request: IncomingMessage): Principal {
    try {
      return this.gate.principalOf(request)
    } catch {
      return NOBODY
    }
  }

  private fail(response: ServerResponse, failure: Failure): void {
    // What was not read to its end cannot be followed by another request.
    const last =
      !response.req.complete || failure.code === 'STOPPING' || expectationOf(response.req) === 'other'
    const close = last ? { connection: 'close' } : {}
    this.send(response, {
      status: failure.status,
      body: bodyOf(failure),
      headers: { ...headersOf(failure), ...close },
    })
  }

  private nextId(): string {
    this.count++
    return `${this.run}-${this.count}`
  }
}

function bodyOf({ code, message, fields }: Failure): unknown {
  return { error: { code, message, ...fields } }
}

function headersOf({ code, retryAfter, fields }: Failure): Record<string, string> {
  if (code === 'UNAUTHENTICATED') return { 'www-authenticate': 'Bearer' }
  if (code === 'METHOD_NOT_ALLOWED') return { allow: String(fields['allowed']) }
  return retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
}

/** No stack and no cause leaves the server. */
function internal(id: string): Failure {
  return new Failure('INTERNAL', `Something is wrong with the lock server (request ${id}).`)
}

/** HTTP/1.0 knows none. */
function expectationOf({ headers: { expect }, httpVersion }: IncomingMessage): 'none' | 'continue' | 'other' {
  if (expect === undefined || httpVersion !== '1.1') return 'none'
  return CONTINUE.test(expect) ? 'continue' : 'other'
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new Failure('INVALID_ARGUMENT', 'The name in the path is not well-formed.')
  }
}

function remoteOf(socket: Socket): string {
  return socket.remoteAddress ?? 'unix'
}
