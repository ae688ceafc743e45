import { openIoredis } from './drivers.mjs'
import { optional } from './optional.mjs'
import { TTL } from './settings.mjs'

const peer = await optional('redlock-universal', 'it needs Node 22 or newer')

const entry = (id, label, config, settings, more = {}) => ({
  id,
  family: 'redlock-universal',
  renews: true,
  package: 'redlock-universal',
  missing: peer.missing,
  label,
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { createLock, IoredisAdapter } = peer.module
    const { client, close } = await openIoredis(url)
    const adapter = new IoredisAdapter(client)
    const make = (key, ttl) => createLock({ adapter, key, ttl, ...settings })
    return {
      lock(name, ttl = TTL) {
        const lock = make(name, ttl)
        return { acquire: () => lock.acquire(), release: (handle) => lock.release(handle) }
      },
      hold: (name, ttl) =>
        new Promise((resolve, reject) => {
          let lost = false
          make(name, ttl)
            .using((signal) => {
              signal.addEventListener('abort', () => (lost = true))
              return new Promise((drop) => resolve({ held: () => !lost, drop }))
            })
            .catch((error) => {
              lost = true
              reject(new Error('not held', { cause: error }))
            })
        }),
      close,
    }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const redlockUniversal = [
  entry('redlock-universal', 'redlock-universal', 'default', {}),
  entry(
    'redlock-universal-lean',
    'redlock-universal, lean',
    'performance lean, retryAttempts 10,000, retryDelay 10',
    { performance: 'lean', retryAttempts: 10_000, retryDelay: 10 },
    { tuned: true },
  ),
]
