import { lookup } from 'node:dns'
import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'

import type { IoredisNode } from './ioredis.ts'
import { placeOf } from './sentinels.ts'
import type { SentinelClient, Sentinels } from './sentinels.ts'
import type { Host } from '../url.ts'

const { setTimeout, clearTimeout } = globalThis

/** A new connection is looked at a little later: one look is enough for several in a row, and sentinels learn in their own time. */
const LOOK_MS = 50
/** A name may lead somewhere else with every question. So often in a row a connection is left because it seems to be elsewhere. */
const MOST_LEAVES = 10
/** What a name leads to is not waited for any longer. */
const LOOKUP_MS = 500

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
  let left = { place: '', times: 0 }
  const moved = async (to: Host, announced: boolean): Promise<void> => {
    const { stream } = client
    const there = await isAt(client, to)
    if (client.status !== 'ready' || client.stream !== stream) return
    const place = placeOf(to)
    if (announced || left.place !== place) left = { place, times: 0 }
    if (there ?? !announced) left.times = 0
    else if (left.times++ < MOST_LEAVES) leave()
  }
  const look = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      sentinels
        .primaries()
        .then(([at]) => at && moved(at, false))
        .catch(() => {})
    }, LOOK_MS)
    timer.unref()
  }
  client.on('ready', () => {
    sentinels.listen({ moved: (to) => void moved(to, true), listening: look })
    look()
  })
  client.on('end', () => {
    clearTimeout(timer)
    sentinels.close()
  })
}

/** Whether a connection leads there. Not known of a name that nobody can tell now. */
async function isAt({ stream }: IoredisNode, { host, port }: Host): Promise<boolean | undefined> {
  const address = stream?.remoteAddress?.replace(/^::ffff:/, '')
  if (stream?.remotePort !== port) return false
  if (isIP(host) !== 0) return address === host
  // All servers of a group may have one port: in Kubernetes they do.
  const places = await addressesOf(host)
  return places?.some((place) => place.address === address)
}

function addressesOf(name: string): Promise<readonly LookupAddress[] | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), LOOKUP_MS)
    timer.unref()
    lookup(name, { all: true }, (error, places) => {
      clearTimeout(timer)
      resolve(error === null ? places : undefined)
    })
  })
}
