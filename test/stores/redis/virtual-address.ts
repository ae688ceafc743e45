import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** An address that leads to one server, later to another. Connections that stand stay where they lead. */
export class VirtualAddress {
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private target: number

  private constructor(target: number) {
    this.target = target
    this.server = createServer({ noDelay: true }, (client) => this.lead(client))
  }

  static async of(target: number): Promise<VirtualAddress> {
    const address = new VirtualAddress(target)
    address.server.listen(0, '127.0.0.1')
    await once(address.server, 'listening')
    return address
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  /** From now on new connections lead there. */
  moveTo(port: number): void {
    this.target = port
  }

  /** Ends the connections that stand. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.cut()
    this.server.close()
    await once(this.server, 'close')
  }

  private lead(client: Socket): void {
    const server = connect({ host: '127.0.0.1', port: this.target, noDelay: true })
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  }
}
