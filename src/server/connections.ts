import type { Server, Socket } from 'node:net'

import type { Limits } from './limits.ts'

/** A connection has a name by which its plain and its TLS socket are known to be the same. */
type Key = string | Socket

interface Open {
  readonly socket: Socket
  readonly address: string
}

/**
 * Who is connected. Connections without a request in service are many and cheap for an attacker; when there are too
 * many, the one that has been silent for longest goes. A limit that refuses newcomers instead would let ten thousand
 * silent ones lock everybody else out.
 */
export class Connections {
  private readonly limits: Limits
  private readonly open = new Map<Key, Open>()
  /** Without a request in service, the one silent for longest first. By address, too. */
  private readonly idle = new Map<Key, Open>()
  private readonly idleAt = new Map<string, Set<Key>>()

  constructor(server: Server, limits: Limits) {
    this.limits = limits
    server.maxConnections = limits.connections
    server.on('connection', (socket: Socket) => this.add(socket))
  }

  get size(): number {
    return this.open.size
  }

  /** A complete request of somebody known is in service. */
  busy(socket: Socket): void {
    this.unlist(keyOf(socket))
  }

  /** Its request is done with. */
  rest(socket: Socket): void {
    const key = keyOf(socket)
    const entry = this.open.get(key)
    if (entry !== undefined && !this.idle.has(key)) this.list(key, entry)
  }

  destroyAll(): void {
    for (const { socket } of this.open.values()) socket.destroy()
  }

  private add(socket: Socket): void {
    const key = keyOf(socket)
    const entry: Open = { socket, address: socket.remoteAddress ?? 'unix' }
    this.open.set(key, entry)
    socket.once('close', () => {
      this.unlist(key)
      this.open.delete(key)
    })
    this.list(key, entry)
  }

  private list(key: Key, entry: Open): void {
    this.idle.set(key, entry)
    let peers = this.idleAt.get(entry.address)
    if (peers === undefined) this.idleAt.set(entry.address, (peers = new Set()))
    peers.add(key)
    // On a unix socket all callers have the same address: only the limit for all can tell them apart.
    const crowded = entry.address !== 'unix' && peers.size > this.limits.idlePerAddress
    if (crowded) this.evict(peers)
    else if (this.idle.size > this.limits.idleConnections) this.evict(this.idle.keys())
  }

  private evict(keys: Iterable<Key>): void {
    for (const key of keys) {
      const entry = this.idle.get(key)
      this.unlist(key)
      entry?.socket.destroy()
      return
    }
  }

  private unlist(key: Key): void {
    const entry = this.idle.get(key)
    if (entry === undefined) return
    this.idle.delete(key)
    const peers = this.idleAt.get(entry.address)
    peers?.delete(key)
    if (peers?.size === 0) this.idleAt.delete(entry.address)
  }
}

function keyOf(socket: Socket): Key {
  return socket.remotePort === undefined ? socket : `${socket.remoteAddress ?? ''}|${socket.remotePort}`
}
