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
    const { Client } = peer.module.default
    const client = await new Client({ host: '127.0.0.1', port: broker.port, ...settings }).ensure()
    // A socket that closes is an event here, and loud when nobody listens.
    client.emitter.on('warning', () => {})
    return {
      lock: (name) => ({
        acquire: () => client.acquire(name, {}),
        release: ({ id: lockId }) => client.release(name, { id: lockId }),
      }),
      // It has a read-write client, but with readers and a writer in one process that one stops answering, so that
      // its exclusive lock has to do for both.
      close: () => client.close(),
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
