import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

import { FrameCutter } from '../../../src/stores/zookeeper/client/frames.ts'

const EVENT = -1

/** A way to a server on which is counted what goes by. Pings are left out: how many there are is a matter of time. */
export class Wiretap {
  /** The operations that were asked for. */
  readonly requests: number[] = []
  /** How often something was asked for after an answer had come: the round trips, where one thing is done at a time. */
  flights = 0
  replies = 0
  /** Watches that fired. */
  events = 0
  private answered = true
  private readonly server: Server
  private readonly sockets = new Set<Socket>()

  private constructor(port: number) {
    this.server = createServer({ noDelay: true }, (client) => {
      const server = connect({ host: '127.0.0.1', port, noDelay: true })
      this.pass(client, server, (xid, opcode) => this.asked(xid, opcode))
      this.pass(server, client, (xid) => this.said(xid))
    })
  }

  static async open({ port }: { readonly port: number }): Promise<Wiretap> {
    const tap = new Wiretap(port)
    await new Promise<void>((resolve) => void tap.server.listen(0, '127.0.0.1', resolve))
    return tap
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  /** Begins to count anew. What is asked for next begins a flight. */
  reset(): void {
    this.requests.length = 0
    this.flights = this.replies = this.events = 0
    this.answered = true
  }

  close(): void {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  private pass(from: Socket, to: Socket, saw: (xid: number, opcode: number) => void): void {
    const frames = new FrameCutter(2 ** 30)
    let greeted = false
    this.sockets.add(from)
    from.on('error', () => undefined)
    from.on('close', () => {
      this.sockets.delete(from)
      to.destroy()
    })
    from.on('data', (chunk: Buffer) => {
      frames.push(chunk, (buffer, start) => {
        if (greeted) saw(buffer.readInt32BE(start), buffer.readInt32BE(start + 4))
        greeted = true
      })
      to.write(chunk)
    })
  }

  private asked(xid: number, opcode: number): void {
    if (xid < 0) return
    this.requests.push(opcode)
    if (this.answered) this.flights++
    this.answered = false
  }

  private said(xid: number): void {
    if (xid === EVENT) this.events++
    if (xid < 0) return
    this.replies++
    this.answered = true
  }
}
