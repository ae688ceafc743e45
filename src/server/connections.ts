import type { Server, Socket } from 'node:net'

import type { Limits } from './limits.ts'
import { networkOf } from './network.ts'

/** A connection has a name by which its plain and its TLS socket are known to be the same. */
type Key = string | Socket

interface Open {
  readonly socket: Socket
  readonly address: string
  idleSince: number
}

/** Time to send a request before the crowd counts: a thousand clients may well come at once. */
const FRESH_MS = 1000

/**
 * Who is connected. Connections without a request in service are many and cheap for an attacker; when there are too
 * many, those that have been silent for longest go. A limit that refuses newcomers instead would let ten thousand
 * silent ones lock everybody else out.
 */
export class Connections {
  private readonly limits: Limits
  private readonly open = new Map<Key, Open>()
  /** Without a request in service, the one silent for longest first. By address, too. */
  private readonly idle = new Map<Key, Open>()
  private readonly idleAt = new Map<string, Map<Key, Open>>()
  private readonly trimmer: NodeJS.Timeout

  constructor(server: Server, limits: Limits) {
    this.limits = limits
    server.on('connection', (socket: Socket) => this.add(socket))
    this.trimmer = setInterval(() => this.trim(), FRESH_MS)
    this.trimmer.unref()
    server.on('close', () => clearInterval(this.trimmer))
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
    // Full: the oldest without a request goes, fresh or not; if all have one, the newcomer.
    if (this.open.size >= this.limits.connections && !this.evictOldest(this.idle, Infinity)) {
      socket.destroy()
      return
    }
    const key = keyOf(socket)
    // It has been here before, with an offer that was not taken.
    if (this.open.get(key)?.socket === socket) return
    const entry: Open = { socket, address: networkOf(socket.remoteAddress ?? 'unix'), idleSince: 0 }
    this.open.set(key, entry)
    socket.once('close', () => {
      this.unlist(key)
      this.open.delete(key)
    })
    this.list(key, entry)
    this.trimOne(entry.address, performance.now() - FRESH_MS)
  }

  private list(key: Key, entry: Open): void {
    entry.idleSince = performance.now()
    this.idle.set(key, entry)
    let peers = this.idleAt.get(entry.address)
    if (peers === undefined) this.idleAt.set(entry.address, (peers = new Map<Key, Open>()))
    peers.set(key, entry)
  }

  private trim(): void {
    const before = performance.now() - FRESH_MS
    for (const address of this.idleAt.keys()) while (this.trimOne(address, before)) continue
  }

  /** Closes one connection, if there are too many. */
  private trimOne(address: string, before: number): boolean {
    const peers = this.idleAt.get(address)
    // On a unix socket all callers have the same address: only the limit for all can tell them apart.
    if (peers !== undefined && address !== 'unix' && peers.size > this.limits.idlePerAddress) {
      return this.evictOldest(peers, before)
    }
    return this.idle.size > this.limits.idleConnections && this.evictOldest(this.idle, before)
  }

  private evictOldest(among: ReadonlyMap<Key, Open>, before: number): boolean {
    const oldest = among.entries().next()
    if (oldest.done === true) return false
    const [key, { socket, idleSince }] = oldest.value
    if (idleSince > before) return false
    this.unlist(key)
    // Forgotten now, not when it has closed: the next newcomer is counted at once.
    this.open.delete(key)
    socket.destroy()
    return true
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

/** Both ends: one port of a client's leads to as many connections as this machine has addresses. */
function keyOf(socket: Socket): Key {
  const { remoteAddress = '', remotePort, localAddress = '', localPort = 0 } = socket
  return remotePort === undefined ? socket : `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`
}
