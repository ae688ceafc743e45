import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { getHeapStatistics } from 'node:v8'

/** Requests that may wait on one connection behind the one that is being answered. */
const WAITING = 32
/** Of the heap, for all requests that wait so. */
const SHARE = 1 / 16
const MOST = 64 * 1024 * 1024
/** What a request takes besides its headers and its body. */
const OVERHEAD = 1024
/** Of a body whose length is not told: what is read of it before its turn. */
const UNTOLD = 64 * 1024
/** After an eviction there is room for a while. */
const ROOM = 3 / 4

interface Line {
  readonly requests: { readonly serve: () => void; readonly bytes: number }[]
  bytes: number
}

/**
 * One request of a connection at a time: the next is looked at when the answer to the one before has been taken. A
 * client may send many in one packet, and would otherwise have them all answered before it reads the first. Those that
 * wait have been read, and the one in front may wait for a lock for a minute: when all of them together are too much, the
 * connections with most of them go. (To read nothing more meanwhile would be simpler, but then nobody would notice
 * that a client has hung up.)
 */
export class Turns {
  private readonly lines = new Map<Socket, Line>()
  private readonly most: number
  private total = 0

  constructor(most: number = Math.min(MOST, getHeapStatistics().heap_size_limit * SHARE)) {
    this.most = most
  }

  isBusy(socket: Socket): boolean {
    return this.lines.has(socket)
  }

  /** Bytes of the requests that wait. */
  get size(): number {
    return this.total
  }

  /** `serve` is called now, or when its turn has come; `done` must follow. */
  take(request: IncomingMessage, serve: () => void): void {
    const { socket } = request
    const line = this.lines.get(socket)
    if (line === undefined) {
      this.lines.set(socket, { requests: [], bytes: 0 })
      serve()
      return
    }
    // What came in the same packet as the one that was too much.
    if (socket.destroyed) return
    if (line.requests.length >= WAITING) return void socket.destroy()
    const bytes = bytesOf(request)
    line.requests.push({ serve, bytes })
    line.bytes += bytes
    this.total += bytes
    if (this.total > this.most) this.evict()
  }

  done(socket: Socket): void {
    const line = this.lines.get(socket)
    const next = socket.destroyed ? undefined : line?.requests.shift()
    if (line === undefined) return
    if (next === undefined) {
      this.drop(line)
      this.lines.delete(socket)
      return
    }
    line.bytes -= next.bytes
    this.total -= next.bytes
    next.serve()
  }

  private drop(line: Line): void {
    this.total -= line.bytes
    line.bytes = 0
    line.requests.length = 0
  }

  private evict(): void {
    const fattestFirst = [...this.lines].sort(([, one], [, other]) => other.bytes - one.bytes)
    for (const [socket, line] of fattestFirst) {
      if (this.total <= this.most * ROOM) return
      this.drop(line)
      socket.destroy()
    }
  }
}

function bytesOf({ rawHeaders, url = '', headers }: IncomingMessage): number {
  const told = headers['content-length']
  const body =
    told !== undefined ? Math.min(Number(told), UNTOLD) : 'transfer-encoding' in headers ? UNTOLD : 0
  return rawHeaders.reduce((sum, { length }) => sum + length, url.length + body + OVERHEAD)
}
