import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Lease, Store } from 'holdfast'
import { openRedisStore, redisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { VirtualAddress } from './virtual-address.ts'

interface Client {
  readonly store: Store
  readonly close: () => Promise<void>
}

/** The usual advice for an address that moves: a server that has become a replica is left. */
async function usersOwn(port: number): Promise<Client> {
  const client = new Redis(port, { reconnectOnError: ({ message }) => message.includes('READONLY') })
  client.on('error', () => {})
  const store = redisStore(client)
  await client.ping()
  return {
    store,
    async close() {
      await store.close()
      client.disconnect()
    },
  }
}

const storesOwn =
  (driver: 'ioredis' | 'redis') =>
  async (port: number): Promise<Client> => {
    const store = await openRedisStore(`redis://127.0.0.1:${port}`, { driver })
    return { store, close: async () => store.close() }
  }

/** So long that a waiter which is not woken is not there in time by asking either. */
const PATIENCE_MS = 30_000

const CLIENTS = [
  ['an ioredis client that leaves a replica', usersOwn],
  ['the store’s own ioredis client', storesOwn('ioredis')],
  ['the store’s own node-redis client', storesOwn('redis')],
] as const

describe.skipIf(!available('redis')).each(CLIENTS)(
  'an address that moves to another server, through %s',
  (_, connect) => {
    let first: Server
    let second: Server
    let address: VirtualAddress
    const open: { client: Client; holdfast: Holdfast }[] = []

    beforeEach(async () => {
      first = await redis({ args: ['--repl-ping-replica-period', '1'] })
      second = await redis({ args: ['--replicaof', '127.0.0.1', String(first.port)] })
      while (!(await role(second)).includes('connected')) await sleep(20)
      address = await VirtualAddress.of(first.port)
    })
    afterEach(async () => {
      for (const { client, holdfast } of open.splice(0)) {
        await holdfast.close()
        await client.close()
      }
      await address.close()
      await Promise.all([first.stop(), second.stop()])
    })

    const role = async (server: Server): Promise<string> => String(await redisCommand(server, 'ROLE'))
    const join = async (patience: number): Promise<Holdfast> => {
      const client = await connect(address.port)
      const holdfast = new Holdfast(client.store, { ttl: 5_000, wait: 20_000, requestTimeout: 500, patience })
      open.push({ client, holdfast })
      return holdfast
    }
    /** Planned: nothing is lost, and every connection to the old primary stays open. */
    const failOver = async (): Promise<void> => {
      const online = async (): Promise<string> => String(await redisCommand(first, 'INFO', 'replication'))
      await expect.poll(online, { timeout: 20_000 }).toContain('state=online')
      await redisCommand(first, 'FAILOVER', 'TO', '127.0.0.1', String(second.port))
      await expect.poll(() => role(second), { timeout: 15_000 }).toContain('master')
      await expect.poll(() => role(first), { timeout: 15_000 }).toContain('connected')
      address.moveTo(second.port)
    }

    it('never has two holders, and everybody gets the lock', async () => {
      const holder = await join(900)
      const waiters = [await join(900), await join(900), await join(900)]
      const lease = await holder.mutex('lock').acquire()
      let inside = 0
      let most = 0
      const tokens: bigint[] = []
      const enter = async (got: Promise<Lease>): Promise<void> => {
        const mine = await got
        most = Math.max(most, ++inside)
        tokens.push(mine.token)
        await sleep(50)
        inside--
        await mine.release()
      }
      const entered = waiters.map((waiter) => enter(waiter.mutex('lock').acquire()))
      for (const one of entered) one.catch(() => {})
      await expect.poll(async () => (await holder.inspect('lock')).waiters.length).toBe(3)
      await failOver()
      // The holder finds the new primary.
      await (await holder.mutex('another').acquire()).release()
      expect(await lease.release()).toBe('released')
      await Promise.all(entered)
      expect(most).toBe(1)
      expect(new Set(tokens).size).toBe(3)
      expect(tokens.every((token, at) => at === 0 || token > (tokens[at - 1] ?? 0n))).toBe(true)
    })

    it('goes on waking those who wait', async () => {
      const [holder, waiter] = [await join(PATIENCE_MS), await join(PATIENCE_MS)]
      // The waiter listens at the old server from here on.
      const before = await holder.mutex('lock').acquire()
      const woken = waiter.mutex('lock').acquire()
      woken.catch(() => {})
      await expect.poll(async () => (await holder.inspect('lock')).waiters.length).toBe(1)
      await before.release()
      await (await woken).release()

      await failOver()
      // A command of each finds out that the server has become a replica.
      for (const one of [holder, waiter]) await (await one.mutex('another').acquire()).release()
      const listeners = async (): Promise<unknown> => redisCommand(second, 'PUBSUB', 'CHANNELS')
      await expect.poll(listeners, { timeout: 5_000 }).toHaveLength(1)
      const lease = await holder.mutex('lock').acquire()
      const waiting = waiter.mutex('lock').acquire()
      waiting.catch(() => {})
      await expect.poll(async () => (await holder.inspect('lock')).waiters.length).toBe(1)
      const began = performance.now()
      await lease.release()
      await (await waiting).release()
      expect(performance.now() - began).toBeLessThan(2_000)
    })
  },
)
