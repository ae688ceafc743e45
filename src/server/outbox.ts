import type { Server, Socket } from 'node:net'

import type { Limits } from './limits.ts'

interface Unread {
  /** Bytes that have not been taken, when last looked at. */
  length: number
  /** Since when there have been any, and how many were given since. */
  readonly since: number
  given: number
}

const LOOK_MS = 1000
/** Bytes a millisecond: who reads more slowly than this for longer than the timeout is not reading. */
const SLOWEST = 64
/** After an eviction there is room for a while: to look for the fattest one at every write would be work for nothing. */
const ROOM = 3 / 4

/**
 * What was said and has not been taken by the clients yet, over all connections. Each answer is within its limits, but
 * nobody makes a client read: who takes too little for too long is gone, and when all of it together is too much,
 * whoever has left most goes first.
 */
export class Outbox {
  private readonly limits: Limits
  private readonly unread = new Map<Socket, Unread>()
  private total = 0

  constructor(server: Server, limits: Limits) {
    this.limits = limits
    const looker = setInterval(() => this.look(), LOOK_MS)
    looker.unref()
    server.on('close', () => clearInterval(looker))
  }

  /** Bytes. */
  get size(): number {
    return this.total
  }

  /** After every write. Mostly the system has taken it at once, and there is nothing to remember. */
  wrote(socket: Socket): void {
    if (socket.writableLength === 0 && !this.unread.has(socket)) return
    this.measure(socket)
    if (this.total > this.limits.unreadInAll) this.evict()
  }

  private measure(socket: Socket): Unread | null {
    const length = socket.destroyed ? 0 : socket.writableLength
    const known = this.unread.get(socket)
    const more = length - (known?.length ?? 0)
    this.total += more
    if (length === 0) {
      this.unread.delete(socket)
      return null
    }
    if (known === undefined) {
      const fresh: Unread = { length, since: performance.now(), given: length }
      this.unread.set(socket, fresh)
      return fresh
    }
    known.length = length
    if (more > 0) known.given += more
    return known
  }

  private look(): void {
    const now = performance.now()
    for (const socket of this.unread.keys()) {
      const one = this.measure(socket)
      if (one === null || now - one.since <= this.limits.writeTimeout + one.given / SLOWEST) continue
      socket.destroy()
      this.measure(socket)
    }
  }

  private evict(): void {
    for (const socket of this.unread.keys()) this.measure(socket)
    const fattestFirst = [...this.unread].sort(([, one], [, other]) => other.length - one.length)
    for (const [socket] of fattestFirst) {
      if (this.total <= this.limits.unreadInAll * ROOM) return
      socket.destroy()
      this.measure(socket)
    }
  }
}
