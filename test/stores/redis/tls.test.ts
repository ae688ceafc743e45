import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

import type { Cluster } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { driverFor } from '../../../src/stores/redis/client/index.ts'
import { connectTo } from '../../../src/stores/redis/client/of-url.ts'
import { parseUrl } from '../../../src/stores/redis/url.ts'

/** Something that is connected to, and says nothing. */
describe('a server with TLS', () => {
  let server: Server
  let port: number
  let sockets: Socket[]
  beforeEach(async () => {
    sockets = []
    server = createServer((socket) => void sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  it('of a Cluster is connected to by its name, which is what its certificate names', async () => {
    const client = await connectTo(parseUrl(`rediss+cluster://localhost:${port}`), 'ioredis')
    const link = driverFor(client, true)
    await expect.poll(() => sockets.length).toBeGreaterThan(0)
    expect((client as unknown as Cluster).nodes('all').map(({ options }) => options.host)).toEqual([
      'localhost',
    ])
    await link.close()
  })

  it.each(['ioredis', 'redis'] as const)(
    'is called by its name, which a proxy may go by, through %s',
    async (driver) => {
      const connected = once(server, 'connection') as Promise<[Socket]>
      const link = driverFor(await connectTo(parseUrl(`rediss://localhost:${port}`), driver), true)
      const [socket] = await connected
      // The first message says in the clear which server is meant.
      const [hello] = (await once(socket, 'data')) as [Buffer]
      expect(hello.includes('localhost')).toBe(true)
      await link.close()
    },
  )
})
