import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'

import type { Reading, ResourceReply } from './protocol.ts'

/** A client's way to the resource. No fault is put on it: what arrives late there was late at the client. */
export class ResourceClient {
  private readonly socket: Socket
  private readonly client: string
  private readonly waiting = new Map<number, (reply: ResourceReply) => void>()
  private ids = 0

  constructor(port: number, client: string) {
    this.client = client
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('error', () => undefined)
    createInterface({ input: this.socket }).on('line', (line) => {
      const reply = JSON.parse(line) as ResourceReply
      this.waiting.get(reply.id)?.(reply)
      this.waiting.delete(reply.id)
    })
  }

  async read(name: string, token: bigint): Promise<Reading> {
    const reply = await this.ask({ do: 'read', name, token: String(token) })
    return 'reading' in reply ? reply.reading : { unfenced: null, fenced: null }
  }

  async write(name: string, token: bigint, read: Reading): Promise<void> {
    await this.ask({ do: 'write', name, token: String(token), read })
  }

  close(): void {
    this.socket.destroy()
  }

  private ask(request: object): Promise<ResourceReply> {
    this.ids += 1
    const id = this.ids
    this.socket.write(`${JSON.stringify({ id, client: this.client, ...request })}\n`)
    return new Promise((resolve) => void this.waiting.set(id, resolve))
  }
}
