import { afterAll, beforeAll, describe, it } from 'vitest'

import { available } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'
import { memcached } from '../../scripts/services/memcached.mjs'
import { memcachedStore } from '../../src/stores/memcached/index.ts'
import { vitestConformance } from 'holdfast/testkit'
import { builds, leftovers } from '../stores/memcached/kit.ts'

const NO_LIST = 'memcached cannot say which keys it has'

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
          createStore: () => memcachedStore(server.url),
          // Whole seconds, rounded up, and three more; see docs/stores/memcached.md.
          grace: 4500,
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
          exceptions: {
            'list/pages': NO_LIST,
            'list/prefix': NO_LIST,
            'list/forgets': NO_LIST,
            'list/names': NO_LIST,
            'connection/claim-cut':
              'a holder is described when it has heard of its grant; the rest of it is tried in test/stores/memcached/connections.test.ts',
          },
        },
      )
    })
  }
})
