import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Store } from 'holdfast'
import { openRedisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Crew } from './crew.ts'
import { leftoversAt } from './leftovers.ts'

const LAWFUL = { exclusivity: [], tokens: [], leftovers: [] }
const DRIVERS = ['ioredis', 'redis'] as const

/** Processes that fight over a lock while something happens to the server. */
describe.skipIf(!available('redis')).each(DRIVERS)('a lock that is fought over, through %s', (driver) => {
  let server: Server
  let crew: Crew
  const stores = (count: number): Promise<Store[]> =>
    Promise.all(Array.from({ length: count }, () => openRedisStore(server.url, { driver })))

  beforeEach(async () => {
    server = await redis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    crew = new Crew(await stores(3), 'contended')
    crew.start()
    await crew.progress(10)
  })
  afterEach(async () => {
    await crew.stop()
    await server.stop()
  })

  const verdict = async (): Promise<object> => ({
    ...(await crew.stop()),
    leftovers: await leftoversAt(server),
  })

  it('goes on when the server forgets its scripts, again and again', async () => {
    for (let round = 0; round < 20; round++) {
      await redisCommand(server, 'SCRIPT', 'FLUSH')
      await crew.progress(5)
    }
    expect(await verdict()).toEqual(LAWFUL)
  })

  it('goes on when the connections for commands are killed', async () => {
    for (let round = 0; round < 8; round++) {
      await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await crew.progress(5)
    }
    expect(await verdict()).toEqual(LAWFUL)
  })

  it('goes on when the connections for wake-ups are killed', async () => {
    for (let round = 0; round < 8; round++) {
      await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
      await crew.progress(5)
    }
    expect(await verdict()).toEqual(LAWFUL)
  })

  it('is held by nobody while the server stands still for longer than a lease, and goes on afterwards', async () => {
    await server.pause()
    await sleep(2_500)
    const during = crew.sections
    await sleep(500)
    expect(crew.sections).toBe(during)
    await server.resume()
    await crew.progress(10)
    expect(await verdict()).toEqual(LAWFUL)
  })

  it('goes on after the server was killed and came back with its data', async () => {
    await server.kill('SIGKILL')
    await sleep(300)
    await server.restart()
    await crew.progress(10)
    expect(await verdict()).toEqual(LAWFUL)
  })

  it('grows its tokens also when the server comes back empty', async () => {
    await server.kill('SIGKILL')
    await server.restart({ keepData: false })
    await crew.progress(10)
    expect((await crew.stop()).tokens).toEqual([])
  })

  it('grows its tokens also when everything is deleted', async () => {
    for (let round = 0; round < 10; round++) {
      await redisCommand(server, 'FLUSHALL')
      await crew.progress(5)
    }
    expect((await crew.stop()).tokens).toEqual([])
  })
})

/** What a full memory does to locks. Only those who want more are turned away. */
describe.skipIf(!available('redis'))('a server whose memory is full', () => {
  let server: Server
  let store: Store
  let holdfast: Holdfast
  beforeEach(async () => {
    server = await redis({ args: ['--maxmemory-policy', 'noeviction'] })
    store = await openRedisStore(server.url)
    holdfast = new Holdfast(store, { ttl: 1_000, wait: 300, requestTimeout: 200 })
  })
  afterEach(async () => {
    await holdfast.close()
    await store.close()
    await server.stop()
  })

  it('keeps the locks that are held, lets them go, and hands them over, but gives out no new ones', async () => {
    const held = await holdfast.mutex('held').acquire()
    const shared = await holdfast.semaphore('shared', 5).acquire({ permits: 2 })
    const other = await openRedisStore(server.url)
    const waiter = new Holdfast(other, { ttl: 1_000, wait: 10_000 })
    const waiting = waiter.mutex('held').acquire()
    await expect.poll(async () => (await holdfast.inspect('held')).waiters.length).toBe(1)

    await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', 1)
    await expect(holdfast.mutex('new').acquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    // Longer than the lease: they were renewed.
    await sleep(1_500)
    expect([held.held, shared.held]).toEqual([true, true])
    expect(await held.release()).toBe('released')
    expect(await shared.release()).toBe('released')
    expect(await (await waiting).release()).toBe('released')

    await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', 0)
    await (await holdfast.mutex('new').acquire()).release()
    await waiter.close()
    await other.close()
  })
})
