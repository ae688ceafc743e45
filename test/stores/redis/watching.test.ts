import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { ClaimRequest, Store, StoreEvent, Watch } from 'holdfast/store'
import { openRedisStore, redisStore } from 'holdfast/redis'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const claimOf = (name: string, id: string): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 30_000,
  patience: 30_000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'test',
})

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'what a session hears, through %s',
  (driver) => {
    let server: Server
    let store: Store
    let heard: StoreEvent[]
    beforeAll(async () => void (server = await redis()))
    afterAll(() => server.stop())
    beforeEach(async () => {
      await redisCommand(server, 'FLUSHALL')
      store = await openRedisStore(server.url, { driver })
      heard = []
    })
    afterEach(() => store.close())

    const watch = async (session: string, events = heard): Promise<Watch> => {
      const answer = await store.watch(session, (event) => events.push(event), 2_000)
      if (answer.kind === 'unknown') throw answer.cause
      return answer
    }
    const subscribers = async (): Promise<number> => {
      const list = String(await redisCommand(server, 'CLIENT', 'LIST', 'TYPE', 'pubsub'))
      return list.split('\n').filter((line) => line.includes('addr=')).length
    }

    it('comes over one connection, for any number of sessions and names', async () => {
      const others: StoreEvent[] = []
      await watch('ann')
      await watch('bob', others)
      for (let i = 0; i < 50; i++) {
        await store.claim(claimOf(`name ${i}`, `ann.${i}`), 2_000)
        await store.claim(claimOf(`name ${i}`, `bob.${i}`), 2_000)
      }
      expect(await subscribers()).toBe(1)
      await expect.poll(() => heard.length).toBe(50)
      expect(new Set(heard.map(({ kind }) => kind))).toEqual(new Set(['contended']))
      for (let i = 0; i < 50; i++)
        await store.release({ name: `name ${i}`, id: `ann.${i}` }, undefined, 2_000)
      await expect.poll(() => others.length).toBe(50)
      expect(others[7]).toMatchObject({
        kind: 'granted',
        name: 'name 7',
        id: 'bob.7',
        count: 1,
        contended: false,
      })
    })

    it('is subscribed to once for all who come together, however many', async () => {
      await redisCommand(server, 'CONFIG', 'RESETSTAT')
      const together = Array.from({ length: 1_000 }, (_, at) => watch(`s${at}`))
      // Some leave at once.
      const some = Array.from({ length: 50 }, (_, at) => watch(`gone${at}`).then((one) => one.stop()))
      await Promise.all([...together, ...some])
      const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
      expect(Number(/cmdstat_subscribe:calls=(\d+)/.exec(stats)?.[1])).toBeLessThan(10)
      expect(await subscribers()).toBe(1)
    })

    it('ends with the session; the connection goes with the last one', async () => {
      const [ann, bob] = [await watch('ann'), await watch('bob')]
      ann.stop()
      await expect.poll(() => redisCommand(server, 'PUBSUB', 'CHANNELS')).toEqual(['hf:s:bob'])
      bob.stop()
      await expect.poll(subscribers).toBe(0)
      await watch('eve')
      expect(await redisCommand(server, 'PUBSUB', 'CHANNELS')).toEqual(['hf:s:eve'])
    })

    it('has a gap after the connection was lost, and goes on after it', async () => {
      await watch('ann')
      await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
      await expect.poll(() => heard).toEqual([{ kind: 'gap' }])
      // What is told after the gap is heard.
      await store.claim(claimOf('name', 'ann.1'), 2_000)
      await store.claim(claimOf('name', 'bob.1'), 2_000)
      await expect.poll(() => heard.at(-1)).toEqual({ kind: 'contended', name: 'name', id: 'ann.1' })
    })

    it('has a gap also if a session that comes meanwhile makes the new connection, time after time', async () => {
      await watch('ann')
      for (let times = 1; times <= 3; times++) {
        await redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
        // As soon as the loss is known, and mostly before the store's own attempt.
        const came = (): Promise<boolean> =>
          watch(`eve${times}`, []).then(
            () => true,
            () => false,
          )
        await expect.poll(came, { interval: 1, timeout: 5_000 }).toBe(true)
        await expect.poll(() => heard.length).toBe(times)
      }
      expect(heard).toEqual(heard.map(() => ({ kind: 'gap' })))
    })

    it('is not disturbed by what others publish on its channel', async () => {
      await watch('ann')
      for (const noise of ['', 'g', 'g a b c', 'c x', 'g x 1 1 1 no-key', '\u0000', 'c ann.1 hf:{other}']) {
        await redisCommand(server, 'PUBLISH', 'hf:s:ann', noise)
      }
      await expect.poll(() => heard).toEqual([{ kind: 'contended', name: 'other', id: 'ann.1' }])
    })

    it('passes over a session that does not listen, also while somebody else listens to everything', async () => {
      const curious = new Redis(server.port)
      await curious.psubscribe('*')
      await watch('bob')
      await store.claim(claimOf('name', 'ann.1'), 2_000)
      for (const id of ['gone.1', 'bob.1']) await store.claim(claimOf('name', id), 2_000)
      await store.release({ name: 'name', id: 'ann.1' }, undefined, 2_000)
      await expect.poll(() => heard).toMatchObject([{ kind: 'granted', name: 'name', id: 'bob.1' }])
      curious.disconnect()
    })

    it('is not waited for on a connection that was taken and never answered', async () => {
      const proxy = await FaultProxy.open(server)
      const behind = await openRedisStore(`redis://${proxy.host}:${proxy.port}`, { driver })
      proxy.set('requests', { blackhole: true })
      const listen = async (): Promise<string> => (await behind.watch('ann', () => {}, 300)).kind
      expect(await listen()).toBe('unknown')
      // What was swallowed is not sent again: that connection stays as it is.
      proxy.heal()
      await expect.poll(listen, { timeout: 20_000 }).toBe('watching')
      await behind.close()
      await proxy.close()
    })

    it('is looked after when the connection swallows everything without a word', async () => {
      await store.close()
      const proxy = await FaultProxy.open(server)
      store = await openRedisStore(`redis://127.0.0.1:${proxy.port}`, { driver })
      await watch('ann')
      const direct = await openRedisStore(server.url, { driver })
      await direct.claim(claimOf('name', 'bob.1'), 2_000)
      await store.claim(claimOf('name', 'ann.1'), 2_000)
      expect(await subscribers()).toBe(1)

      // Both connections are dead from here on, and the grant gets lost on one of them.
      proxy.set('replies', { blackhole: true })
      proxy.set('requests', { blackhole: true })
      await direct.release({ name: 'name', id: 'bob.1' }, undefined, 2_000)
      const renew = { ...claimOf('name', 'ann.1'), tokens: 0 }
      for (let i = 0; i < 3; i++) expect((await store.renew([renew], 600))[0]?.kind).toBe('unknown')
      proxy.heal()
      // Signs of life get through again, and tell what was missed.
      const renewed = async (): Promise<unknown> => (await store.renew([renew], 500))[0]?.kind
      await expect.poll(renewed, { timeout: 10_000 }).toBe('renewed')
      // Who waits looks after the connection.
      await direct.claim(claimOf('another', 'bob.2'), 2_000)
      const waiting = claimOf('another', 'ann.2')
      expect(await store.claim(waiting, 2_000)).toMatchObject({ kind: 'queued' })
      const stillWaiting = async (): Promise<unknown> =>
        (await store.renew([{ ...waiting, tokens: 0 }], 500))[0]?.kind
      await expect
        .poll(async () => (await stillWaiting()) && heard, { timeout: 20_000, interval: 500 })
        .toEqual([{ kind: 'gap' }])
      await direct.close()
      await store.close()
      await proxy.close()
      store = direct
    })
  },
)

describe.skipIf(!available('redis'))('several sessions of one store', () => {
  it('are all listened to when the first one gave up a connection that the second one joined', async () => {
    await using server = await redis()
    const proxy = await FaultProxy.open(server)
    const client = new Redis(server.port)
    // What the connection for wake-ups hears comes late: later than a word may take, sooner than a subscription may.
    proxy.set('replies', { latency: 1_500 })
    const duplicate = client.duplicate.bind(client)
    client.duplicate = (options) => duplicate({ ...options, port: proxy.port, enableReadyCheck: false })
    const store = redisStore(client)
    const listening = async (session: string): Promise<boolean> =>
      ((await redisCommand(server, 'PUBSUB', 'CHANNELS')) as string[]).includes(`hf:s:${session}`)
    const heard: StoreEvent[] = []

    const first = store.watch('ann', () => {}, 10_000)
    await expect.poll(() => listening('ann'), { timeout: 5_000, interval: 20 }).toBe(true)
    await new Promise((resolve) => void setTimeout(resolve, 500))
    expect(await store.watch('bob', (event) => heard.push(event), 10_000)).toMatchObject({ kind: 'watching' })
    expect(await first).toMatchObject({ kind: 'unknown' })
    proxy.heal()

    await expect.poll(() => listening('bob'), { timeout: 10_000 }).toBe(true)
    // It may have missed something meanwhile, and is told so.
    await expect.poll(() => heard).toEqual([{ kind: 'gap' }])
    await store.close()
    client.disconnect()
    await proxy.close()
  })
})

describe.skipIf(!available('redis'))(
  'where new connections are swallowed, and those that are open work',
  () => {
    it('a waiter hears soon of a lock that became free, and is woken again when they are not', async () => {
      await using server = await redis()
      const proxy = await FaultProxy.open(server)
      for (const direction of ['requests', 'replies'] as const) proxy.set(direction, { blackhole: true })
      const client = new Redis(server.port)
      const duplicate = client.duplicate.bind(client)
      client.duplicate = (options) => duplicate({ ...options, port: proxy.port })
      const holdfast = new Holdfast(redisStore(client))
      const others = new Holdfast(await openRedisStore(server.url))
      const delay = async (): Promise<number> => {
        const lease = await others.mutex('x').acquire()
        const waits = holdfast.mutex('x').acquire({ wait: 4_000 })
        await new Promise((resolve) => void setTimeout(resolve, 300))
        await lease.release()
        const freeAt = performance.now()
        const own = await waits
        const took = performance.now() - freeAt
        await own.release()
        return took
      }
      // Up to a second at first, the longest pause of a poll after that.
      for (let round = 0; round < 3; round++) expect(await delay()).toBeLessThan(1_500)
      expect(proxy.accepted).toBeGreaterThan(0)
      proxy.heal()
      proxy.reset()
      const watched = (): boolean =>
        (holdfast as unknown as { session: { watching: boolean } }).session.watching
      await expect.poll(async () => (await delay()) < 1_500 && watched(), { timeout: 20_000 }).toBe(true)
      await holdfast.close()
      await others.close()
      await others.store.close()
      client.disconnect()
      await proxy.close()
    })
  },
)
