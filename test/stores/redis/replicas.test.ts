import { createRequire } from 'node:module'

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type * as NodeRedis from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { Holdfast, StoreUnavailableError } from 'holdfast'
import type { ClaimRequest } from 'holdfast/store'
import { openRedisStore, redisStore } from 'holdfast/redis'

import { available, redis, redisCluster, redisCommand, sentinel } from '../../../scripts/services.mjs'
import type { RedisCluster, Server } from '../../../scripts/services.mjs'

const DRIVERS = ['ioredis', 'redis'] as const

const claimOf = (name: string, id = 'session.1'): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 30_000,
  patience: 5_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})

describe.skipIf(!available('redis')).each(['ioredis', 'ioredis-6'])(
  'a grant that replicas have to confirm, through %s with enableAutoPipelining',
  (name) => {
    it.each([[[]], [['wait']], [['evalsha']]])(
      'is not believed without one, also with %j sent at once',
      async (ignored) => {
        await using primary = await redis()
        await using replica = await redis({ args: ['--replicaof', primary.host, String(primary.port)] })
        const online = async (): Promise<boolean> =>
          String(await redisCommand(primary, 'INFO', 'replication')).includes('state=online')
        await vi.waitUntil(online, { timeout: 20_000 })
        const driver = createRequire(import.meta.url)(name) as { readonly Redis: typeof Redis }
        const client = new driver.Redis(primary.port, {
          enableAutoPipelining: true,
          autoPipeliningIgnoredCommands: ignored,
        })
        onTestFinished(() => client.disconnect())
        // A replica that has only just come may take a moment for its first answer.
        const store = redisStore(client, { replicas: 1, replicaTimeout: 1_500 })
        expect(await store.claim(claimOf('known'), 6_000)).toMatchObject({ kind: 'held' })
        // The replica has everything that was written so far on this connection.
        expect(await client.call('wait', '1', '5000')).toBe(1)
        await replica.pause()
        expect(await store.claim(claimOf('unknown'), 6_000)).toMatchObject({ kind: 'unknown' })
        await replica.resume()
        await store.close()
      },
    )
  },
)

describe.skipIf(!available('redis')).each(DRIVERS)(
  'a grant that replicas have to confirm, through %s',
  (driver) => {
    let primary: Server
    let replica: Server
    beforeAll(async () => {
      primary = await redis()
      replica = await redis({ args: ['--replicaof', primary.host, String(primary.port)] })
      const online = async (): Promise<boolean> =>
        String(await redisCommand(primary, 'INFO', 'replication')).includes('state=online')
      await vi.waitUntil(online, { timeout: 20_000 })
    })
    afterAll(async () => {
      await replica.stop()
      await primary.stop()
    })
    const open = (replicas: number, replicaTimeout = 1_500) =>
      openRedisStore(primary.url, { driver, replicas, replicaTimeout })
    /** With a client of one's own, nothing is tried before the first claim. */
    const connect = async (replicas: number) => {
      const options = { replicas, replicaTimeout: 300 }
      if (driver === 'ioredis') {
        const client = new Redis(primary.port)
        closings.push(() => client.disconnect())
        return redisStore(client, options)
      }
      const client = createClient({ url: primary.url })
      await client.connect()
      closings.push(() => client.destroy())
      return redisStore(client, options)
    }
    const closings: (() => void)[] = []
    afterEach(() => closings.splice(0).forEach((close) => close()))

    it('is given once one has it', async () => {
      const store = await open(1)
      expect(await store.claim(claimOf('known'), 6_000)).toMatchObject({ kind: 'held' })
      expect(await redisCommand(replica, 'EXISTS', 'hf:{known}')).toBe(1)
      const renewal = { ...claimOf('known'), tokens: 0 }
      expect(await store.renew([renewal], 6_000)).toEqual([{ kind: 'renewed', contended: false }])
      expect(await store.release(claimOf('known'), undefined, 6_000)).toEqual({
        released: { kind: 'released' },
      })
      await store.close()
    })

    // Each WAIT holds up the next one for as long as the way to the replica takes: by the thousand, leases would end meanwhile.
    it('is waited for once for hundreds of renewals', async () => {
      const store = await open(1)
      const waits = async (): Promise<number> =>
        Number(
          /cmdstat_wait:calls=(\d+)/.exec(String(await redisCommand(primary, 'INFO', 'commandstats')))?.[1],
        )
      const claims = Array.from({ length: 1_000 }, (_, at) => claimOf(`many ${at}`, `session.${at}`))
      await Promise.all(claims.map(async (claim) => store.claim(claim, 20_000)))
      const before = await waits()
      const answers = await store.renew(
        claims.map((claim) => ({ ...claim, tokens: 0 })),
        20_000,
      )
      expect(answers.filter(({ kind }) => kind !== 'renewed')).toEqual([])
      expect((await waits()) - before).toBeLessThan(10)
      await store.close()
    })

    it('is unknown when there are not enough of them, and withdrawn by whoever gives it up', async () => {
      const store = await connect(2)
      const answer = await store.claim(claimOf('doubtful'), 6_000)
      expect(answer).toMatchObject({
        kind: 'unknown',
        cause: { message: '1 of 2 replicas confirmed within 300 ms' },
      })
      const holdfast = new Holdfast(store)
      await expect(holdfast.mutex('doubted').acquire({ wait: 1_000 })).rejects.toThrow(StoreUnavailableError)
      await expect
        .poll(async () => (await store.inspect('doubted', 6_000)) as object, { timeout: 10_000 })
        .toMatchObject({ holders: [] })
      await holdfast.close({ timeout: 500 })
      await store.close()
    })

    it('is said when the store is opened that there are not enough of them', async () => {
      await expect(open(2, 300)).rejects.toThrow('1 of 2 replicas confirmed within 300 ms')
    })

    it('is said that the user may not ask for it', async () => {
      await redisCommand(primary, 'ACL', 'SETUSER', 'hasty', 'on', '>secret', '~*', '&*', '+@all', '-wait')
      const url = primary.url.replace('://', '://hasty:secret@')
      const opening = openRedisStore(url, { driver, replicas: 1 })
      await expect(opening).rejects.toThrow(/NOPERM.*docs\/stores\/redis\.md/)
    })

    it('is not taken away by the fate of the first question, when the second was granted', async () => {
      const [first, other] = [
        new Holdfast(await open(1, 2_000)),
        new Holdfast(await openRedisStore(primary.url)),
      ]
      await first.mutex('warm').run(() => {})
      await replica.pause()
      const paused = setTimeout(() => void replica.resume(), 2_100)
      const lease = await first.mutex('money', { ttl: 3_000 }).acquire()
      expect(await other.mutex('money').tryAcquire()).toBeNull()
      lease.assertHeld()
      expect(await lease.release()).toBe('released')
      clearTimeout(paused)
      for (const holdfast of [first, other]) {
        await holdfast.close()
        await holdfast.store.close()
      }
    })

    it('goes on when the server has forgotten the script, and is carried out once', async () => {
      const store = await open(1)
      expect(await store.claim(claimOf('flushed'), 6_000)).toMatchObject({ kind: 'held' })
      await redisCommand(primary, 'SCRIPT', 'FLUSH')
      expect(await store.release(claimOf('flushed'), undefined, 6_000)).toEqual({
        released: { kind: 'released' },
      })
      await store.close()
    })

    it('may be one of many at once', async () => {
      const store = await open(1)
      const names = Array.from({ length: 50 }, (_, i) => `many-${i}`)
      const answers = await Promise.all(names.map(async (name) => store.claim(claimOf(name), 6_000)))
      expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['held']))
      await store.close()
    })
  },
)

describe.skipIf(!available('redis-cluster')).each(DRIVERS)('replicas of a Cluster, through %s', (driver) => {
  let cluster: RedisCluster
  beforeAll(async () => void (cluster = await redisCluster({ primaries: 3, replicas: 1 })))
  afterAll(() => cluster.stop())

  it('confirm grants at the node where they were made', async () => {
    const url = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`
    const store = await openRedisStore(url, { driver, replicas: 1, replicaTimeout: 1_000 })
    for (let i = 0; i < 12; i++) {
      expect(await store.claim(claimOf(`name-${i}`), 3_000)).toMatchObject({ kind: 'held' })
    }
    await store.close()
    const strict = openRedisStore(url, { driver, replicas: 2, replicaTimeout: 50 })
    await expect(strict).rejects.toThrow('1 of 2 replicas confirmed')
  })
})

/** One for Sentinels may have several connections to the primary, and none of them is ours to choose. */
describe.skipIf(!available('sentinel')).each(['redis', 'redis-6'])('a pool of %s', (driver) => {
  it.each([1, 2, 5])('confirms no grant by another of its %d connections', async (masterPoolSize) => {
    const { createSentinel } = createRequire(import.meta.url)(driver) as typeof NodeRedis
    await using group = await sentinel({ replicas: 1, downAfter: 60_000 })
    const primary = (await group.primary())!
    const replica = group.nodes.find(({ port }) => port !== primary.port)!
    const online = async (): Promise<boolean> =>
      String(await redisCommand(primary, 'INFO', 'replication')).includes('state=online')
    await vi.waitUntil(online, { timeout: 20_000 })
    // The script is known: the first answer is that of the first question.
    const other = await openRedisStore(primary.url)
    expect(await other.claim(claimOf('other'), 6_000)).toMatchObject({ kind: 'held' })
    await other.close()

    const client = createSentinel({
      name: group.name,
      sentinelRootNodes: group.sentinels.map(({ host, port }) => ({ host, port })),
      masterPoolSize,
    })
    client.on('error', () => {})
    await client.connect()
    const store = redisStore(client, { replicas: 1, replicaTimeout: 300 })
    await replica.pause()
    for (const name of ['first', 'second'])
      expect(await store.claim(claimOf(name), 6_000)).toMatchObject({
        kind: 'unknown',
        cause: { message: '0 of 1 replicas confirmed within 300 ms' },
      })
    await replica.resume()
    const again = async (): Promise<unknown> => (await store.claim(claimOf('first'), 6_000)).kind
    await expect.poll(again, { timeout: 10_000 }).toBe('held')
    await store.close()
    await client.destroy()
  })
})
