import { afterAll, beforeAll, describe, it } from 'vitest'

import { available, zookeeper, zookeeperEnsemble } from '../../scripts/services.mjs'
import type { Server, ZooKeeperEnsemble } from '../../scripts/services.mjs'
import type { Store } from '../../src/core/contract.ts'
import { zookeeperStore } from '../../src/stores/zookeeper/index.ts'
import { documented, vitestConformance } from 'holdfast/testkit'
import type { StoreModule } from 'holdfast/testkit'
import { leftovers, MAX_SESSION_TIMEOUT } from '../stores/zookeeper/kit.ts'
import { everything } from './abilities.ts'

const module = new URL('../../dist/stores/zookeeper/index.js', import.meta.url).href
/** Connected from the start: the ttl is that of most cases. */
const takerModule = (servers: string): StoreModule => ({
  url: module,
  export: 'openZooKeeperStore',
  args: `zookeeper://${servers}?ttl=5000&maxSessionTimeout=${MAX_SESSION_TIMEOUT}`,
})
const options = { maxSessionTimeout: MAX_SESSION_TIMEOUT }
const connect = (servers: readonly Server[]): string =>
  servers.map(({ host, port }) => `${host}:${port}`).join(',')

describe.skipIf(!available('zookeeper'))('ZooKeeper', () => {
  describe('by itself', () => {
    let server: Server
    beforeAll(async () => void (server = await zookeeper()))
    afterAll(() => server.stop())

    vitestConformance(
      { describe, it },
      {
        name: 'zookeeper',
        abilities: everything,
        createStore: () => zookeeperStore(connect([server]), options),
        leftovers: () => leftovers(connect([server])),
        module: () => takerModule(connect([server])),
        proxied: {
          upstream: () => server,
          createStore: ({ host, port }): Store => zookeeperStore(`${host}:${port}`, options),
        },
        restart: () => server.restart(),
        ...documented['zookeeper'],
      },
    )
  })

  describe('an ensemble of three', () => {
    let ensemble: ZooKeeperEnsemble
    beforeAll(async () => void (ensemble = await zookeeperEnsemble()))
    afterAll(() => ensemble.stop())

    vitestConformance(
      { describe, it },
      {
        name: 'zookeeper ensemble',
        abilities: everything,
        // Clients go to different servers, so that what one wrote is not simply there for the next.
        createStore: () => zookeeperStore(connect(ensemble.servers), options),
        leftovers: () => leftovers(connect(ensemble.servers)),
        module: () => takerModule(connect(ensemble.servers)),
        restart: async () => {
          await ensemble.restart()
          await ensemble.serving()
        },
        ...documented['zookeeper'],
      },
    )
  })
})
