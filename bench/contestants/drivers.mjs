// The Redis drivers, with every request counted on its way out.
import { Redis } from 'ioredis'
import { createClient } from 'redis'

import { countRequests } from './requests.mjs'

countRequests(Redis.prototype, 'sendCommand')

let nodeRedisCounted = false

function countNodeRedis(client) {
  if (nodeRedisCounted) return
  nodeRedisCounted = true
  const ownerOf = (method) => {
    let at = client
    while (at !== null && !Object.hasOwn(at, method)) at = Object.getPrototypeOf(at)
    return at
  }
  countRequests(ownerOf('sendCommand'), 'sendCommand')
  for (const method of ['_executePipeline', '_executeMulti']) {
    const owner = ownerOf(method)
    if (owner !== null) countRequests(owner, method, (commands) => commands.length)
  }
}

/** One connection of `ioredis`, open. */
export async function openIoredis(url) {
  const client = new Redis(url, { lazyConnect: true })
  // A server that goes away is told by the commands that fail; the event would end the process.
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.disconnect() }
}

/** One connection of `redis` (node-redis), open. */
export async function openNodeRedis(url) {
  const client = createClient({ url })
  client.on('error', () => {})
  countNodeRedis(client)
  await client.connect()
  return { client, close: () => client.destroy() }
}

export const DRIVERS = { ioredis: openIoredis, 'node-redis': openNodeRedis }
