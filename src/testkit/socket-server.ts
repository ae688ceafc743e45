import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

import type { Store, Watch } from '../core/contract.ts'
import { decode, encode, Lines } from './socket-wire.ts'
import type { SocketCall } from './socket-wire.ts'

export interface SocketServerOptions {
  /** Default: any free one. */
  readonly port?: number | undefined
}

interface Watcher {
  readonly socket: Socket
  readonly watch: Watch
}

const LOOPBACK = '127.0.0.1'

/**
 * Serves a store of this process to other processes of this machine, so that what is said about processes, connections
 * and restarts can be tested without a database. Not for production: it knows neither passwords nor limits.
 */
export class SocketServer {
  readonly host: string = LOOPBACK
  readonly port: number
  private readonly server: Server
  private readonly sockets: Set<Socket>

  private constructor(server: Server, sockets: Set<Socket>) {
    this.server = server
    this.sockets = sockets
    this.port = (server.address() as AddressInfo).port
  }

  static async listen(store: Store, { port = 0 }: SocketServerOptions = {}): Promise<SocketServer> {
    const sockets = new Set<Socket>()
    const sessions = new Map<string, Watcher>()
    const server = createServer({ noDelay: true }, (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      serve(store, socket, sessions)
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, LOOPBACK, resolve)
    })
    return new SocketServer(server, sockets)
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => void this.server.close(resolve))
    for (const socket of this.sockets) socket.destroy()
    await closed
  }
}

/** One connection. Calls run in the order in which they arrive. */
function serve(store: Store, socket: Socket, sessions: Map<string, Watcher>): void {
  const lines = new Lines()
  const send = (message: unknown): void => void (socket.writable && socket.write(encode(message)))
  const run = async ({ id, method, args }: SocketCall): Promise<void> => {
    const given = args.map((arg) => arg ?? undefined)
    if (method === 'watch') {
      const session = given[0] as string
      const watch = await store.watch(session, (event) => send({ session, event }), Number(given[1]))
      if (watch.kind === 'watching') sessions.set(session, { socket, watch })
      send({ id, answer: { kind: watch.kind } })
    } else if (method === 'unwatch') {
      sessions.get(given[0] as string)?.watch.stop()
      send({ id, answer: null })
    } else {
      const call = store[method] as (...given: readonly unknown[]) => unknown
      send({ id, answer: await call.apply(store, given) })
    }
  }
  let last: Promise<void> = Promise.resolve()
  socket.on('data', (chunk: Buffer) => {
    for (const line of lines.take(chunk)) {
      const call = decode(line) as SocketCall
      last = last
        .then(() => run(call))
        .catch((cause: unknown) => send({ id: call.id, answer: failed(cause) }))
    }
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    for (const [session, watcher] of sessions) {
      // A session that listens on a newer connection already stays.
      if (watcher.socket !== socket) continue
      watcher.watch.stop()
      sessions.delete(session)
    }
  })
}

function failed(cause: unknown): { kind: 'unknown'; cause: string } {
  return { kind: 'unknown', cause: String(cause) }
}
