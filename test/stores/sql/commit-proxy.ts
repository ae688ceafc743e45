import { createServer, connect } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Of a transaction, and not of the one that makes the table. */
export const isCommit = (chunk: Buffer): boolean => chunk.includes('COMMIT') && !chunk.includes('CREATE')

/**
 * A proxy in front of a database that keeps the first COMMIT for a while before it passes it on. `cut`: the client's
 * connection is reset meanwhile, so that it hears of no answer, and the server still gets it.
 */
export class CommitProxy {
  private readonly server: Server

  private constructor(server: Server) {
    this.server = server
  }

  static async open(
    to: { host: string; port: number },
    ms: number,
    { cut = false } = {},
  ): Promise<CommitProxy> {
    let waiting = true
    const server = createServer((client) => {
      const upstream = connect(to.port, to.host)
      upstream.on('error', () => {})
      client.on('error', () => {})
      upstream.pipe(client)
      let kept = false
      const pass = async (chunk: Buffer): Promise<void> => {
        if (waiting && isCommit(chunk)) {
          waiting = false
          kept = true
          if (cut) client.resetAndDestroy()
          await sleep(ms)
          kept = false
          upstream.write(chunk)
          if (cut) upstream.end()
        } else upstream.write(chunk)
      }
      client.on('data', (chunk: Buffer) => void pass(chunk).catch(() => {}))
      client.on('close', () => {
        if (!kept) upstream.destroy()
      })
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    return new CommitProxy(server)
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  close(): void {
    this.server.close()
  }
}
