import { lock } from 'simple-redis-mutex'

import { openNodeRedis } from './drivers.mjs'
import { TTL } from './settings.mjs'

/** @type {import('./index.mjs').Contestant[]} */
export const simpleRedisMutex = [
  {
    id: 'simple-redis-mutex',
    family: 'simple-redis-mutex',
    package: 'simple-redis-mutex',
    label: 'simple-redis-mutex',
    store: 'redis',
    role: 'peer',
    driver: 'node-redis',
    config: 'default (told by pub/sub), node-redis',
    async open({ url }) {
      const { client, close } = await openNodeRedis(url)
      return {
        lock: (name, timeout = TTL) => ({
          acquire: () => lock(client, name, { timeout }),
          release: (release) => release(),
        }),
        close,
      }
    },
  },
]
