import { Verrou } from '@verrou/core'
import { memoryStore } from '@verrou/core/drivers/memory'
import { redisStore } from '@verrou/core/drivers/redis'

import { openIoredis } from './drivers.mjs'
import { TTL } from './settings.mjs'

function session(driver, retry, close) {
  const verrou = new Verrou({ default: 'store', stores: { store: { driver } } })
  const settings = retry === undefined ? undefined : { retry }
  return {
    lock(name, ttl = TTL) {
      const lock = verrou.createLock(name, ttl)
      return {
        // It answers false instead of throwing when it gives up.
        acquire: () => lock.acquire(settings).then(orThrow),
        release: () => lock.release(),
      }
    },
    close,
  }
}

function orThrow(acquired) {
  if (acquired === false) throw new Error('not acquired')
}

const onRedis = (id, label, config, retry, more = {}) => ({
  id,
  family: 'verrou',
  package: '@verrou/core',
  label,
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { client, close } = await openIoredis(url)
    return session(redisStore({ connection: client }), retry, close)
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const verrou = [
  onRedis('verrou', '@verrou/core', 'default', undefined),
  onRedis('verrou-eager', '@verrou/core, eager', 'retry delay 10', { delay: 10 }, { waitingOnly: true }),
  {
    id: 'verrou-memory',
    family: 'verrou',
    package: '@verrou/core',
    label: '@verrou/core (memory)',
    store: 'memory',
    role: 'peer',
    config: 'default',
    open: async () => session(memoryStore(), undefined, () => {}),
  },
]
