import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, it } from 'vitest'

import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { startServer } from '../../src/server/index.ts'
import type { RunningServer } from '../../src/server/index.ts'
import { vitestConformance } from 'holdfast/testkit'
import { everything } from './abilities.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-server-'))
const socket = join(folder, 'locks.sock')

let server: RunningServer
let local: RunningServer

const port = (): number => Number(server.address.split(':').at(-1))

beforeAll(async () => {
  server = await startServer({ listen: '127.0.0.1:0' })
  local = await startServer({ listen: `unix:${socket}`, state: join(folder, 'state.json') })
})

afterAll(async () => {
  await server.close()
  await local.close()
  rmSync(folder, { recursive: true, force: true })
})

vitestConformance(
  { describe, it },
  {
    name: 'lock server',
    abilities: everything,
    createStore: () => holdfastStore(server.url),
    module: () => ({
      url: new URL('../../dist/stores/holdfast/index.js', import.meta.url).href,
      export: 'openHoldfastStore',
      args: server.url,
    }),
    proxied: {
      upstream: () => ({ host: '127.0.0.1', port: port() }),
      createStore: (at) => holdfastStore(`holdfast://${at.host}:${at.port}`),
    },
    restart: async () => {
      const { address } = server
      await server.close()
      // Without a past: what a restart does to leases is told elsewhere; here the clients have to find it again.
      server = await startServer({ listen: address, state: null })
    },
  },
)

vitestConformance(
  { describe, it },
  {
    name: 'lock server on a unix socket, with a state file',
    abilities: everything,
    createStore: () => holdfastStore(`holdfast+unix:${socket}`),
  },
)
