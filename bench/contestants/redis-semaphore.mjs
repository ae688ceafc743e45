import { Mutex } from 'redis-semaphore'

import { openIoredis } from './drivers.mjs'
import { PATIENCE, TTL } from './settings.mjs'

const entry = (id, config, settings, more = {}) => ({
  id,
  family: 'redis-semaphore',
  renews: true,
  package: 'redis-semaphore',
  label: more.waitingOnly ? 'redis-semaphore, eager' : 'redis-semaphore',
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { client, close } = await openIoredis(url)
    // Its default answer to a lost lock is to throw from a timer, which would end the process.
    const make = (name, ttl, onLockLost = () => {}) =>
      new Mutex(client, name, { ...settings, lockTimeout: ttl, onLockLost })
    return {
      // A Mutex has state and serves one task at a time, so every task has its own.
      lock(name, ttl = TTL) {
        const mutex = make(name, ttl)
        return { acquire: () => mutex.acquire(), release: () => mutex.release() }
      },
      async hold(name, ttl) {
        const mutex = make(name, ttl)
        await mutex.acquire()
        return { held: () => mutex.isAcquired, drop: () => mutex.release() }
      },
      close,
    }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const redisSemaphore = [
  entry('redis-semaphore', 'default', {}, { growth: true }),
  entry(
    'redis-semaphore-eager',
    `retryInterval 1, acquireTimeout ${PATIENCE}`,
    { retryInterval: 1, acquireTimeout: PATIENCE },
    { waitingOnly: true },
  ),
]
