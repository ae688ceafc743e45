import { optional } from './optional.mjs'
import { PATIENCE, TTL } from './settings.mjs'

const peer = await optional(
  'live-mutex',
  'its install script writes into the home folder, so it is no dependency here; ' +
    '`npm install --no-save --ignore-scripts live-mutex@0.2.25` adds it',
)

const entry = (id, label, config, settings, more = {}) => ({
  id,
  family: 'live-mutex',
  package: 'live-mutex',
  missing: peer.missing,
  label,
  store: 'redis',
  role: 'peer',
  config: `${config}; its own broker, no Redis`,
  ownStore: true,
  needsBroker: true,
  async open({ broker }) {
    const { Client, RWLockWritePrefClient } = peer.module.default
    const connect = (Kind) => new Kind({ host: '127.0.0.1', port: broker.port, ...settings }).ensure()
    const client = await connect(Client)
    let sharing
    return {
      lock: (name) => ({
        acquire: () => client.acquire(name, {}),
        release: ({ id: lockId }) => client.release(name, { id: lockId }),
      }),
      async prepareShared() {
        sharing = await connect(RWLockWritePrefClient)
      },
      shared: (name) => ({
        read: {
          acquire: () => sharing.acquireReadLockp(name),
          release: () => sharing.releaseReadLockp(name),
        },
        write: {
          acquire: () => sharing.acquireWriteLockp(name),
          release: () => sharing.releaseWriteLockp(name),
        },
      }),
      close() {
        client.close()
        sharing?.close()
      },
    }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const liveMutex = [
  entry('live-mutex', 'live-mutex', 'default', {}),
  entry(
    'live-mutex-patient',
    'live-mutex, patient',
    `ttl ${TTL}, lockRequestTimeout ${PATIENCE}`,
    { ttl: TTL, lockRequestTimeout: PATIENCE },
    { waitingOnly: true },
  ),
]
