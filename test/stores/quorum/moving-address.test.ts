import { connect, createServer } from 'node:net'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import type { ClaimAnswer, Store } from 'holdfast/store'
import { openRedlockStore, quorumStore } from 'holdfast/quorum'
import { redisStore } from 'holdfast/redis'
import type { RedisClient } from 'holdfast/redis'

import { available } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { request, startServers, stopAll, urlOf } from './kit.ts'
import type { Place } from './kit.ts'

/** An address that may lead elsewhere: a service name, a load balancer, a container's address that was given out again. */
class Address {
  readonly host = '127.0.0.1'
  port = 0
  private to: Place | null
  private readonly sockets = new Set<Socket>()
  private readonly server: NetServer

  constructor(to: Place | null) {
    this.to = to
    this.server = createServer((near) => {
      if (this.to === null) {
        near.destroy()
        return
      }
      const far = connect(this.to.port, this.to.host)
      near.pipe(far)
      far.pipe(near)
      for (const socket of [near, far]) {
        this.sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          near.destroy()
          far.destroy()
          this.sockets.delete(socket)
        })
      }
    })
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, this.host, resolve))
    this.port = (this.server.address() as AddressInfo).port
    return this
  }

  lead(to: Place | null): void {
    this.to = to
    for (const socket of this.sockets) socket.destroy()
  }

  close(): void {
    this.lead(null)
    this.server.close()
  }
}

const quietly = <C extends { on(event: 'error', listener: () => void): unknown }>(client: C): C => {
  client.on('error', () => {})
  return client
}

type Opened = readonly [store: Store, close: () => Promise<void>]

/** Through clients of the store's own, and through clients of the user's, with what their drivers do by default. */
const WAYS: readonly [string, (places: readonly Place[]) => Promise<Opened>][] = [
  ...(['ioredis', 'redis'] as const).map(
    (driver): [string, (places: readonly Place[]) => Promise<Opened>] => [
      `a URL and ${driver}`,
      async (places) => {
        const store = await openRedlockStore(urlOf(places), { driver, setUp: 'now' })
        return [store, async () => store.close()]
      },
    ],
  ),
  [
    'clients of ioredis',
    (places) => {
      const clients = places.map(({ host, port }) => quietly(new Redis(port, host)))
      return opened(clients, () => clients.forEach((client) => client.disconnect()))
    },
  ],
  [
    'clients of redis',
    async (places) => {
      const clients = places.map(({ host, port }) =>
        quietly(createClient({ socket: { host, port, reconnectStrategy: 50 } })),
      )
      for (const client of clients) void client.connect().catch(() => {})
      await sleep(100)
      return opened(clients, () => clients.forEach((client) => client.destroy()))
    },
  ],
]

async function keysOf(server: Server, name: string): Promise<number> {
  const direct = new Redis(server.port, server.host)
  const keys = await direct.keys(`*${name}*`)
  direct.disconnect()
  return keys.length
}

function opened(clients: readonly unknown[], end: () => void): Promise<Opened> {
  const store = quorumStore(
    clients.map((client) => redisStore(client as RedisClient)),
    { setUp: 'now' },
  )
  const close = async (): Promise<void> => {
    await store.close()
    end()
  }
  return Promise.resolve([store, close])
}

describe.skipIf(!available('redis')).each(WAYS)(
  'an address that comes to lead elsewhere, with %s',
  (_way, open) => {
    let servers: Server[]
    let [a, b, c]: Server[] = []
    let ends: (() => unknown)[] = []
    let number = 0
    beforeAll(async () => {
      servers = await startServers(3)
      ;[a, b, c] = servers
    })
    afterAll(() => stopAll(servers))
    afterEach(async () => {
      for (const end of ends.reverse()) await end()
      ends = []
    })
    const places = async (...to: (Server | undefined)[]): Promise<Address[]> => {
      const addresses = await Promise.all(to.map((server) => new Address(server ?? null).open()))
      ends.push(() => addresses.forEach((address) => address.close()))
      return addresses
    }
    const client = async (at: readonly Place[]): Promise<Store> => {
      const [store, close] = await open(at)
      ends.push(close)
      return store
    }
    const aClaim = () => request(`lock ${++number}`, `s${number}.1`, 5_000)
    /** Until it is held, or for so long. */
    const claimed = async (
      store: Store,
      claim: ReturnType<typeof aClaim>,
      ms: number,
    ): Promise<ClaimAnswer> => {
      const until = performance.now() + ms
      for (;;) {
        const answer = await store.claim(claim, 1_000)
        if (answer.kind === 'held' || performance.now() > until) return answer
        await sleep(50)
      }
    }

    /** A claim that it holds, by the votes of all servers: a majority may answer before the last one is even met. */
    const heldEverywhere = async (store: Store): Promise<ReturnType<typeof aClaim>> => {
      for (let tries = 0; tries < 20; tries++) {
        const claim = aClaim()
        expect((await claimed(store, claim, 2_000)).kind).toBe('held')
        await sleep(50)
        const votes = await Promise.all(servers.map((server) => keysOf(server, claim.name)))
        if (votes.every((keys) => keys > 0)) return claim
      }
      throw new Error('no claim had the votes of all three servers')
    }

    it('gives no server a second vote', async () => {
      const addresses = await places(a, b, c)
      const store = await client(addresses)
      await heldEverywhere(store)
      addresses[0]?.lead(null)
      addresses[2]?.lead(b as Server)
      await sleep(300)
      const claim = aClaim()
      const answer = await claimed(store, claim, 500)
      expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
      expect((answer as { cause: Error }).cause.message).toMatch(
        /leads to the server of .*, which would have two votes/,
      )
      // Others have a majority.
      const other = await client(await places(a, undefined, c))
      expect((await claimed(other, { ...claim, id: 'other.1' }, 2_000)).kind).toBe('held')
      // It leads back.
      addresses[2]?.lead(c as Server)
      expect((await claimed(store, aClaim(), 3_000)).kind).toBe('held')
    })

    it('keeps no lease by one server alone', async () => {
      const addresses = await places(a, b, c)
      const store = await client(addresses)
      const claim = await heldEverywhere(store)
      addresses[0]?.lead(null)
      addresses[2]?.lead(b as Server)
      await sleep(300)
      const [answer] = await store.renew([{ ...claim, tokens: 0 }], 1_000)
      expect(answer?.kind).toBe('unknown')
      addresses[2]?.lead(c as Server)
      await expect
        .poll(async () => (await store.renew([{ ...claim, tokens: 0 }], 1_000))[0]?.kind, { timeout: 3_000 })
        .toBe('renewed')
    })

    it('does no harm where two addresses change places', async () => {
      const addresses = await places(a, b, c)
      const store = await client(addresses)
      await heldEverywhere(store)
      addresses[1]?.lead(c as Server)
      addresses[2]?.lead(b as Server)
      addresses[0]?.lead(null)
      expect((await claimed(store, aClaim(), 3_000)).kind).toBe('held')
    })
  },
)
