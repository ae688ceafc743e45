import { isIP } from 'node:net'

import type { IoredisNode } from './ioredis.ts'
import type { SentinelClient, Sentinels } from './sentinels.ts'
import type { Host } from './url.ts'

const { setTimeout, clearTimeout } = globalThis

/** A new connection is looked at a little later: one look is enough for several in a row, and sentinels learn in their own time. */
const LOOK_MS = 50

/** What a client for one sentinel does differently. */
export const SENTINEL_OPTIONS = {
  lazyConnect: true,
  retryStrategy: () => null,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  maxRetriesPerRequest: 0,
} as const

/** A connection of ioredis to one sentinel, as sentinels are asked and listened to. */
export function sentinelOf(client: IoredisNode): SentinelClient {
  return {
    get isOpen() {
      return client.status !== 'end' && client.status !== 'wait'
    },
    get isReady() {
      return client.status === 'ready'
    },
    on: (event, listener) => client.on(event, listener),
    connect: () => client.connect(),
    sendCommand: ([command = '', ...args]) => client.call(command, ...args),
    async subscribe(channel, listener) {
      client.on('message', (from, text) => listener(String(text), String(from)))
      await client.subscribe(...[channel].flat())
    },
    unref: () => void client.on('connect', () => client.stream?.unref?.()),
    destroy: () => client.disconnect(),
  }
}

const followed = new WeakMap<object, Sentinels>()

/** The sentinels that a client of the store's own comes from. */
export function knowSentinels<C extends object>(client: C, sentinels: Sentinels): C {
  followed.set(client, sentinels)
  return client
}

/**
 * Has a client leave a primary that was replaced as soon as a sentinel says so. By itself it stays until that server is made a
 * replica, ten seconds later, and takes locks there while newcomers take them at the new one. (The driver's own
 * `failoverDetector` can end the client for good.)
 */
export function followSentinels(client: IoredisNode, leave: () => void): void {
  const sentinels = followed.get(client)
  if (sentinels === undefined) return
  let timer: NodeJS.Timeout | undefined
  const moved = (to: Host): void => {
    if (client.status === 'ready' && !isAt(client, to)) leave()
  }
  const look = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      sentinels.primaries().then(
        ([at]) => at !== undefined && moved(at),
        () => undefined,
      )
    }, LOOK_MS)
    timer.unref()
  }
  client.on('ready', () => {
    sentinels.listen({ moved, listening: look })
    look()
  })
  client.on('end', () => {
    clearTimeout(timer)
    sentinels.close()
  })
}

/** As far as can be told: of a server that sentinels call by a name, the port has to do. */
function isAt({ stream }: IoredisNode, { host, port }: Host): boolean {
  const address = stream?.remoteAddress?.replace(/^::ffff:/, '')
  return stream?.remotePort === port && (isIP(host) === 0 || address === host)
}
