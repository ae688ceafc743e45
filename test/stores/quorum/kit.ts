import type { Store } from 'holdfast'
import { openRedlockStore } from 'holdfast/quorum'
import type { OpenRedlockOptions } from 'holdfast/quorum'

import { redis } from '../../../scripts/services.mjs'
import type { Server, ServerOptions } from '../../../scripts/services.mjs'

export interface Place {
  readonly host: string
  readonly port: number
}

/** Longer than every lease of these tests, and short enough to wait for. */
export const MAX_TTL = 2_000

export const startServers = (count: number, options: ServerOptions = {}): Promise<Server[]> =>
  Promise.all(Array.from({ length: count }, () => redis(options)))

export const stopAll = (servers: readonly Server[]): Promise<unknown> =>
  Promise.all(servers.map((server) => server.stop()))

export const urlOf = (places: readonly Place[]): string =>
  `redlock://${places.map(({ host, port }) => `${host}:${port}`).join(',')}`

/** New servers are known to be new here, unless told. */
export const openAt = (places: readonly Place[], options: OpenRedlockOptions = {}): Promise<Store> =>
  openRedlockStore(urlOf(places), { maxTtl: MAX_TTL, setUp: 'now', ...options })

/** They have voted before, so that from now on an empty one is one that lost its memory. */
export async function setUp(places: readonly Place[]): Promise<void> {
  const store = await openAt(places)
  await store.claim(request('set-up'), 1_000)
  await store.release({ name: 'set-up', id: 'set.1' }, undefined, 1_000)
  await store.close()
}

export const request = (name: string, id = 'set.1', ttl = 1_000) =>
  ({
    name,
    id,
    ttl,
    weight: 1,
    capacity: 1,
    patience: 500,
    tokens: 1,
    whenBusy: 'try',
    owner: 'test',
  }) as const
