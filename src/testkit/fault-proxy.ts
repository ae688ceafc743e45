import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

import { FaultPipe } from './fault-pipe.ts'
import type { LinkFaults } from './fault-pipe.ts'

export type { LinkFaults } from './fault-pipe.ts'

/** The real server: a TCP port or a unix socket. */
export type Upstream = { readonly host?: string; readonly port: number } | { readonly path: string }

/** `requests` go from the client to the server, `replies` come back. */
export type Direction = 'requests' | 'replies'

export interface CutOptions {
  /** Which chunks from the client count. Default: all. A chunk is what arrives at once, not what the protocol calls a request. */
  readonly match?: ((chunk: Buffer) => boolean) | undefined
  /** How many of them pass unharmed first. */
  readonly skip?: number | undefined
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  readonly requests: FaultPipe
  readonly replies: FaultPipe
}

interface Cut {
  readonly match: (chunk: Buffer) => boolean
  skip: number
  readonly done: () => void
}

const LOOPBACK = '127.0.0.1'

/** A TCP proxy on a port of the loopback interface that hurts the connections led through it, on command. */
export class FaultProxy {
  readonly host: string = LOOPBACK
  private readonly upstream: Upstream
  private readonly server: Server
  private readonly links = new Set<Link>()
  private readonly faults: Record<Direction, LinkFaults> = { requests: {}, replies: {} }
  private readonly cuts = new Set<Cut>()
  private taken = 0
  private closed = 0
  private lost = 0
  private bound = 0

  private constructor(upstream: Upstream) {
    this.upstream = upstream
    // Each side ends when the other side's end has come through, not before.
    this.server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.link(client))
  }

  static async open(upstream: Upstream): Promise<FaultProxy> {
    const proxy = new FaultProxy(upstream)
    await proxy.accept()
    return proxy
  }

  get port(): number {
    return this.bound
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.links.size
  }

  /** Connections that were ever accepted. */
  get accepted(): number {
    return this.taken
  }

  /** Those of them that the client has no more: its socket is closed, whoever closed it. */
  get ended(): number {
    return this.closed
  }

  /** Bytes that a black hole took. */
  get swallowed(): number {
    return this.lost
  }

  /** Replaces the faults of a direction, for open and for new connections. */
  set(direction: Direction, faults: LinkFaults): void {
    this.faults[direction] = faults
    for (const link of this.links) link[direction].set(faults)
  }

  /** No faults in either direction, and nothing left to cut. What was swallowed stays lost. */
  heal(): void {
    this.cuts.clear()
    this.set('requests', {})
    this.set('replies', {})
  }

  /** Lets a request through to the server, drops its reply and resets the connection. Resolves when that has happened. */
  cutReply({ match = () => true, skip = 0 }: CutOptions = {}): Promise<void> {
    return new Promise((done) => void this.cuts.add({ match, skip, done }))
  }

  /** Ends all connections with a reset, on both sides. */
  reset(): void {
    for (const link of this.links) this.drop(link)
  }

  /** New connections are refused, until `accept`. Those that are open stay. */
  async refuse(): Promise<void> {
    if (!this.server.listening) return
    // Stops listening at once; the callback would wait for the connections that stay.
    this.server.close()
    await new Promise((resolve) => void setImmediate(resolve))
  }

  /** Takes new connections, on the same port as before. */
  async accept(): Promise<void> {
    if (this.server.listening) return
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(this.bound, LOOPBACK, () => {
        this.server.off('error', reject)
        resolve()
      })
    })
    this.bound = (this.server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.heal()
    await this.refuse()
    this.reset()
  }

  private link(client: Socket): void {
    this.taken += 1
    const server = connect({ ...this.upstream, allowHalfOpen: true, noDelay: true })
    const onSwallow = (bytes: number): void => void (this.lost += bytes)
    const requests = new FaultPipe({ from: client, to: server, faults: this.faults.requests, onSwallow })
    const replies = new FaultPipe({ from: server, to: client, faults: this.faults.replies, onSwallow })
    const link: Link = { client, server, requests, replies }
    this.links.add(link)
    requests.inspect = (chunk) => this.applyCuts(link, chunk)
    // An end in order goes through the pipe. An error is told to the other side, if anything gets there at all.
    client
      .on('error', () => undefined)
      .on('close', (failed) => {
        this.closed += 1
        this.gone(link, failed && !requests.silent)
      })
    server.on('error', () => undefined).on('close', (failed) => this.gone(link, failed && !replies.silent))
  }

  private applyCuts(link: Link, chunk: Buffer): boolean {
    for (const cut of this.cuts) {
      if (!cut.match(chunk)) continue
      if (cut.skip > 0) {
        cut.skip -= 1
        continue
      }
      this.cuts.delete(cut)
      // That the server has begun to answer proves that it got the request.
      link.replies.inspect = () => {
        this.drop(link)
        cut.done()
        return false
      }
    }
    return true
  }

  private gone(link: Link, tellOther: boolean): void {
    if (tellOther || (link.client.destroyed && link.server.destroyed)) this.drop(link)
  }

  private drop(link: Link): void {
    link.requests.stop()
    link.replies.stop()
    this.links.delete(link)
    link.client.resetAndDestroy()
    // Only TCP has resets.
    if ('path' in this.upstream) link.server.destroy()
    else link.server.resetAndDestroy()
  }
}
