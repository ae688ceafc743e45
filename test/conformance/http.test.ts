import { afterAll, beforeAll, describe, it } from 'vitest'

import { httpStore } from '../../src/stores/http/index.ts'
import { startServer } from '../../src/server/index.ts'
import type { RunningServer } from '../../src/server/index.ts'
import { vitestConformance } from 'holdfast/testkit'
import { everything } from './abilities.ts'

let server: RunningServer

const url = (): string => `http://${server.address}`
const port = (): number => Number(server.address.split(':').at(-1))

beforeAll(async () => {
  server = await startServer({ listen: '127.0.0.1:0' })
})

afterAll(() => server.close())

vitestConformance(
  { describe, it },
  {
    name: 'lock server, by fetch alone',
    abilities: everything,
    createStore: () => httpStore(url()),
    module: () => ({
      url: new URL('../../dist/stores/http/index.js', import.meta.url).href,
      export: 'openHttpStore',
      args: url(),
    }),
    proxied: {
      upstream: () => ({ host: '127.0.0.1', port: port() }),
      createStore: (at) => httpStore(`http://${at.host}:${at.port}`),
    },
    restart: async () => {
      const { address } = server
      await server.close()
      // Without a past: what a restart does to leases is told elsewhere; here the clients have to find it again.
      server = await startServer({ listen: address, state: null })
    },
  },
)
