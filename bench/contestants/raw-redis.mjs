// The raw limit: what a careful person would send by hand for one lock on one server, without waiting, renewal or
// tokens. The same driver, `SET NX PX` and a compare-and-delete script called by its hash.
import { randomUUID } from 'node:crypto'

import { openIoredis, openNodeRedis } from './drivers.mjs'
import { TTL } from './settings.mjs'

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

/** @type {import('./index.mjs').Contestant[]} */
export const rawRedis = [
  {
    id: 'raw-redis',
    family: 'raw',
    label: 'raw limit (ioredis)',
    store: 'redis',
    role: 'limit',
    config: 'SET NX PX, EVALSHA compare-and-delete',
    open: onIoredis,
  },
  {
    id: 'raw-node-redis',
    family: 'raw',
    label: 'raw limit (node-redis)',
    store: 'redis',
    role: 'limit',
    config: 'SET NX PX, EVALSHA compare-and-delete',
    secondary: true,
    driver: 'node-redis',
    open: async ({ url }) => {
      const { client, close } = await openNodeRedis(url)
      const sha = await client.scriptLoad(RELEASE)
      const lock = locker(
        (key, id, ttl) => client.set(key, id, { NX: true, PX: ttl }),
        (key, id) => client.evalSha(sha, { keys: [key], arguments: [id] }),
      )
      return { lock, close }
    },
  },
  // What our own lock server is compared with: the same work at the server that everybody knows.
  {
    id: 'raw-beside-server',
    family: 'raw',
    label: 'raw limit (Redis, ioredis)',
    store: 'holdfast',
    needs: ['redis'],
    meteredBy: 'redis',
    role: 'limit',
    config: 'on Redis: SET NX PX, EVALSHA compare-and-delete',
    open: onIoredis,
  },
]

async function onIoredis({ url }) {
  const { client, close } = await openIoredis(url)
  const sha = await client.script('LOAD', RELEASE)
  const lock = locker(
    (key, id, ttl) => client.set(key, id, 'PX', ttl, 'NX'),
    (key, id) => client.evalsha(sha, 1, key, id),
  )
  const signals = await openSignals(client)
  return {
    lock,
    signals,
    close() {
      signals.close()
      close()
    },
  }
}

function locker(set, compareAndDelete) {
  return (name, ttl = TTL) => {
    let id = ''
    return {
      async acquire() {
        id = randomUUID()
        if ((await set(name, id, ttl)) !== 'OK') throw new Error('taken')
      },
      release: () => compareAndDelete(name, id),
    }
  }
}

/** Messages between processes with nothing around them: the limit of any hand-over that is pushed. */
async function openSignals(client) {
  const subscriber = client.duplicate({ lazyConnect: true })
  subscriber.on('error', () => {})
  await subscriber.connect()
  return {
    async listen(channel, heard) {
      subscriber.on('message', heard)
      await subscriber.subscribe(channel)
    },
    send: (channel) => client.publish(channel, 'go'),
    ask: (key) => client.get(key),
    close: () => subscriber.disconnect(),
  }
}
