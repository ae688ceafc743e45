import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

import { PROTOCOL, SESSION_PATH } from '../../stores/holdfast/wire.ts'
import type { App } from '../app.ts'
import type { Connections } from '../connections.ts'
import { Failure, tooMany } from '../failure.ts'
import { withoutSomeHeaders } from '../gate.ts'
import type { StreamCounts } from '../stream-counts.ts'
import { SessionStream } from './stream.ts'
import type { StreamParts } from './stream.ts'

const LOOK_MS = 5000

/** The door for remote stores: an HTTP request that asks to go on in lines of JSON. */
export class Streams {
  private readonly app: App
  private readonly parts: StreamParts
  private readonly connections: Connections
  private readonly counts: StreamCounts
  /** Takes a request back that offered something we do not speak. */
  private readonly ignore: (request: IncomingMessage, socket: Socket, head: Buffer) => void
  private readonly open = new Set<SessionStream>()
  private readonly look: NodeJS.Timeout

  constructor(
    app: App,
    parts: StreamParts,
    {
      connections,
      counts,
      ignore,
    }: { connections: Connections; counts: StreamCounts; ignore: Streams['ignore'] },
  ) {
    this.app = app
    this.parts = parts
    this.connections = connections
    this.counts = counts
    this.ignore = ignore
    this.look = setInterval(() => this.dropSilent(), LOOK_MS)
    this.look.unref()
  }

  get size(): number {
    return this.open.size
  }

  readonly upgrade = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    const refuse = (failure: Failure): void => this.app.refuse(socket, failure)
    const wanted = (request.headers.upgrade ?? '').toLowerCase()
    if (!wanted.startsWith('holdfast')) {
      // Its answer would overtake those under way. Nobody who offers sends the next request before the answer.
      if (this.app.isBusy(socket)) return void socket.destroy()
      // Put back without the length of its body, the body would be the next request.
      const incomplete = withoutSomeHeaders(request)
      if (incomplete !== null) return refuse(incomplete)
      return this.ignore(request, socket, head)
    }
    socket.on('error', () => undefined)
    const caller = this.app.admit(request, socket)
    if (caller === null) return
    if (request.url !== SESSION_PATH || request.method !== 'GET')
      return refuse(new Failure('NOT_FOUND', 'There is nothing to upgrade here.'))
    if (wanted !== PROTOCOL)
      return refuse(new Failure('UPGRADE_REQUIRED', `This lock server speaks ${PROTOCOL}.`))
    const { service } = this.parts
    if (service.state.kind === 'stopping')
      return refuse(new Failure('STOPPING', 'The lock server is stopping.', { retryAfter: 1 }))
    const { principal } = caller
    if (!this.counts.enter(principal)) return refuse(tooMany('streams', 5))
    this.connections.busy(socket)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${PROTOCOL}\r\n\r\n`)
    const stream = new SessionStream(this.parts, caller, socket)
    this.open.add(stream)
    const cut = (): void => stream.destroy()
    principal.whenChanged.add(cut)
    socket.on('close', () => {
      principal.whenChanged.delete(cut)
      this.open.delete(stream)
      this.counts.leave(principal)
    })
    stream.head(head)
  }

  endAll(): void {
    clearInterval(this.look)
    for (const stream of this.open) stream.end()
  }

  private dropSilent(): void {
    for (const stream of this.open) if (stream.silentFor > this.parts.limits.silence) stream.destroy()
  }
}
