import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest, Store } from 'holdfast/store'
import { openRedlockStore } from 'holdfast/quorum'
import { checkRedis, openRedisStore, redisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { checkRedlock } from '../../../src/stores/quorum/startup-checks.ts'
import { VirtualAddress } from './virtual-address.ts'

const DRIVERS = ['ioredis', 'redis'] as const

const claimOf = (id: string, name = 'lock'): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 60_000,
  patience: 60_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})

const renewalOf = (id: string, name = 'lock'): RenewRequest => ({
  name,
  id,
  ttl: 60_000,
  patience: 60_000,
  tokens: 0,
})

const LOCAL = /replica that takes writes.*replica-read-only/s

async function ownStore(driver: (typeof DRIVERS)[number], port: number): Promise<[Store, () => void]> {
  if (driver === 'ioredis') {
    const client = new Redis(port, { retryStrategy: () => 20 })
    client.on('error', () => {})
    return [redisStore(client), () => client.disconnect()]
  }
  const client = createClient({ socket: { port, reconnectStrategy: 20 } })
  client.on('error', () => {})
  await client.connect()
  return [redisStore(client), () => client.destroy()]
}

/** With `replica-read-only no` a replica takes locks that nobody else ever hears of. */
describe.skipIf(!available('redis')).each(DRIVERS)('a replica that takes writes, through %s', (driver) => {
  let primary: Server
  let replica: Server
  beforeAll(async () => {
    primary = await redis({ args: ['--replica-read-only', 'no'] })
    replica = await redis({
      args: ['--replicaof', '127.0.0.1', String(primary.port), '--replica-read-only', 'no'],
    })
  })
  afterAll(() => Promise.all([replica.stop(), primary.stop()]))
  beforeEach(() => redisCommand(primary, 'FLUSHALL'))

  it('is refused when a store is opened, and by the checks', async () => {
    const opening = openRedisStore(replica.url, { driver }).then(async (store) => store.close())
    await expect(opening).rejects.toThrow(LOCAL)
    expect(await checkRedis(replica.url, { driver })).toContainEqual(
      expect.objectContaining({ level: 'error', code: 'role' }),
    )
  })

  it('grants nothing to a store on a client of the user', async () => {
    const [store, end] = await ownStore(driver, replica.port)
    for (const whenBusy of ['try', 'queue'] as const)
      expect(await store.claim({ ...claimOf('ann.1'), whenBusy }, 2_000)).toMatchObject({
        kind: 'unknown',
        cause: expect.objectContaining({ message: expect.stringMatching(LOCAL) as string }) as Error,
      })
    await store.close()
    end()
  })

  it('neither grants nor renews after a connection came to lead there', async () => {
    const address = await VirtualAddress.of(primary.port)
    const [store, end] = await ownStore(driver, address.port)
    const names = ['a', 'b', 'c']
    for (const name of names)
      expect(await store.claim(claimOf(`ann.${name}`, name), 2_000)).toMatchObject({ kind: 'held' })
    address.moveTo(replica.port)
    address.cut()
    const renewals = names.map((name) => renewalOf(`ann.${name}`, name))
    // At first there may be no connection at all.
    for (let round = 0; round < 20; round++) {
      for (const { kind } of await store.renew(renewals, 500)) expect(kind).toBe('unknown')
      const [one] = await store.renew(renewals.slice(0, 1), 500)
      expect(one?.kind).toBe('unknown')
      expect(await store.claim(claimOf(`bob.${round}`), 500)).toMatchObject({ kind: 'unknown' })
    }
    address.moveTo(primary.port)
    address.cut()
    await expect.poll(async () => (await store.claim(claimOf('eve.1', 'd'), 500)).kind).toBe('held')
    await store.close()
    end()
    await address.close()
  })

  it('is noticed where the server becomes one under a connection', async () => {
    const [store, end] = await ownStore(driver, primary.port)
    expect(await store.claim(claimOf('ann.1'), 2_000)).toMatchObject({ kind: 'held' })
    await redisCommand(replica, 'REPLICAOF', 'NO', 'ONE')
    await redisCommand(primary, 'REPLICAOF', '127.0.0.1', String(replica.port))
    const renewal = [renewalOf('ann.1')]
    await expect
      .poll(async () => (await store.renew(renewal, 500))[0]?.kind, { timeout: 5_000 })
      .toBe('unknown')
    expect(await store.claim(claimOf('bob.1', 'other'), 500)).toMatchObject({ kind: 'unknown' })
    await redisCommand(primary, 'REPLICAOF', 'NO', 'ONE')
    await expect.poll(async () => (await store.claim(claimOf('bob.2', 'new'), 500)).kind).toBe('held')
    await redisCommand(replica, 'REPLICAOF', '127.0.0.1', String(primary.port))
    await store.close()
    end()
  })

  it('is noticed where a replica begins to take writes', async () => {
    await redisCommand(replica, 'CONFIG', 'SET', 'replica-read-only', 'yes')
    const [store, end] = await ownStore(driver, replica.port)
    const refused = async (message: RegExp): Promise<void> =>
      expect(await store.claim(claimOf('ann.1'), 2_000)).toMatchObject({
        kind: 'unknown',
        cause: expect.objectContaining({ message: expect.stringMatching(message) as string }) as Error,
      })
    await refused(/READONLY/)
    await redisCommand(replica, 'CONFIG', 'SET', 'replica-read-only', 'no')
    // It is asked again within a second.
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    await refused(LOCAL)
    await store.close()
    end()
  })

  it('is not asked for where that is forbidden', async () => {
    await redisCommand(primary, 'ACL', 'SETUSER', 'default', '-info', '-role')
    const [store, end] = await ownStore(driver, primary.port)
    expect(await store.claim(claimOf('ann.1'), 2_000)).toMatchObject({ kind: 'held' })
    const found = await checkRedis(primary.url, { driver })
    await redisCommand(primary, 'ACL', 'SETUSER', 'default', '+@all')
    expect(found).toContainEqual(
      expect.objectContaining({ code: 'unchecked', message: expect.stringContaining('primary') as string }),
    )
    await store.close()
    end()
  })

  it('is no node of a quorum', async () => {
    const others = [await redis(), await redis()]
    const url = `redlock://${[...others, replica].map(({ host, port }) => `${host}:${port}`).join(',')}`
    const store = await openRedlockStore(url, { driver, setUp: 'now' })
    expect(await store.claim(claimOf('ann.1'), 2_000)).toMatchObject({ kind: 'held' })
    await store.close()
    const names = await redisCommand(replica, 'KEYS', '*')
    const found = await checkRedlock(url, { driver })
    await Promise.all(others.map((server) => server.stop()))
    expect(names).toEqual([])
    expect(found).toContainEqual(expect.objectContaining({ level: 'error', code: 'role' }))
  })
})
