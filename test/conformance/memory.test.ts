import { afterAll, beforeAll, describe, it } from 'vitest'

import { memoryStore } from 'holdfast/memory'
import { sharedStore, SocketServer, socketStore, vitestConformance } from 'holdfast/testkit'
import { everything } from './abilities.ts'

const memory = memoryStore()

vitestConformance(
  { describe, it },
  { name: 'memory', abilities: { ...everything, reach: 'process' }, createStore: () => sharedStore(memory) },
)

// What is said about processes, connections and restarts, without a database: the memory store behind a socket.
let server: SocketServer

beforeAll(async () => void (server = await SocketServer.listen(memoryStore())))
afterAll(() => server.close())

vitestConformance(
  { describe, it },
  {
    name: 'memory behind a socket',
    abilities: { ...everything, reach: 'machine' },
    createStore: () => socketStore(server),
    module: () => ({
      url: new URL('../../dist/testkit/socket-store.js', import.meta.url).href,
      export: 'socketStore',
      args: { host: server.host, port: server.port },
    }),
    proxied: { upstream: () => server, createStore: ({ host, port }) => socketStore({ host, port }) },
    restart: async () => {
      const { port } = server
      await server.close()
      server = await SocketServer.listen(memoryStore(), { port })
    },
  },
)
