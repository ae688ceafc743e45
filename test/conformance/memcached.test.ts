import { afterAll, beforeAll, describe, it } from 'vitest'

import { available } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { memcached } from '../../scripts/services/memcached.mjs'
import { memcachedStore } from '../../src/stores/memcached/index.ts'
import { documented, vitestConformance } from 'holdfast/testkit'
import { builds, leftovers } from '../stores/memcached/kit.ts'
import { mutexOnly } from './abilities.ts'

describe.skipIf(!available('memcached'))('memcached', () => {
  for (const { label, command } of builds) {
    describe(`on ${label}`, () => {
      let server: Server
      beforeAll(async () => void (server = await memcached(command === undefined ? {} : { command })))
      afterAll(() => server.stop())

      vitestConformance(
        { describe, it },
        {
          name: 'memcached',
          abilities: { ...mutexOnly, wakeups: 'poll', fencing: 'weak' },
          createStore: () => memcachedStore(server.url),
          ...documented['memcached'],
          leftovers: () => leftovers(server),
          module: () => ({
            url: new URL('../../dist/stores/memcached/index.js', import.meta.url).href,
            export: 'memcachedStore',
            args: server.url,
          }),
          proxied: {
            upstream: () => server,
            createStore: ({ host, port }) => memcachedStore(`memcached://${host}:${port}`),
          },
          restart: () => server.restart(),
        },
      )
    })
  }
})
