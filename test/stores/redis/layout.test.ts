import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Store } from 'holdfast'
import { openRedisStore } from 'holdfast/redis'

import { available, clockShim, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

/** What this version does with what a later one left. */
describe.skipIf(!available('redis'))('the layout of a name', () => {
  let server: Server
  let stores: readonly Store[]
  let holdfasts: readonly Holdfast[]
  beforeAll(async () => {
    server = await redis()
    stores = await Promise.all([0, 1].map(() => openRedisStore(server.url)))
    holdfasts = stores.map((store) => new Holdfast(store, { ttl: 2_000, wait: 5_000 }))
  })
  afterAll(async () => {
    for (const holdfast of holdfasts) await holdfast.close()
    for (const store of stores) await store.close()
    await server.stop()
  })
  beforeEach(() => redisCommand(server, 'FLUSHDB'))

  const fight = async (): Promise<void> => {
    await Promise.all(
      holdfasts.map(async (holdfast) => {
        for (let round = 0; round < 5; round++) await holdfast.readWriteLock('name').write.run(() => {})
        await holdfast.readWriteLock('name').read.run(() => {})
      }),
    )
  }

  it('may have a field more, which is left alone', async () => {
    await redisCommand(server, 'HSET', 'hf:{name}', 'z', 'something new')
    await fight()
    expect(await redisCommand(server, 'HGET', 'hf:{name}', 'z')).toBe('something new')
    const info = await holdfasts[0]!.inspect('name')
    expect([info.holders, info.waiters]).toEqual([[], []])
  })

  it('of a later version is not touched, and the error says so', async () => {
    const newer = ['v', '2', 'h', 'something that means another thing there', 'f', '17 1']
    await redisCommand(server, 'HSET', 'hf:{name}', ...newer)
    await redisCommand(server, 'PEXPIRE', 'hf:{name}', 100_000_000)
    const before = await redisCommand(server, 'DUMP', 'hf:{name}')
    const lock = holdfasts[0]!.mutex('name')
    await expect(lock.acquire()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { message: expect.stringMatching(/layout 2.*knows layout 1: update/s) as string },
    })
    await expect(holdfasts[0]!.inspect('name')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('update') as string },
    })
    const ref = { name: 'name', id: 'session.1' }
    for (const answer of [
      await stores[0]!.withdraw(ref, 1_000),
      (await stores[0]!.release(ref, undefined, 1_000)).released,
      ...(await stores[0]!.renew([{ ...ref, ttl: 1_000, patience: 1_000, tokens: 0 }], 1_000)),
    ])
      expect(answer).toMatchObject({ kind: 'unknown', retryable: false })
    expect(await redisCommand(server, 'DUMP', 'hf:{name}')).toBe(before)
    // Nobody else is kept from anything.
    await Promise.all(['a', 'b', 'c'].map((name) => holdfasts[0]!.mutex(name).run(() => {})))
  })

  it('of a later version or of somebody else keeps no other name out of a list', async () => {
    await redisCommand(server, 'HSET', 'hf:{later}', 'v', '2', 'h', 'x', 'f', '17 1')
    await redisCommand(server, 'HSET', 'hf:{theirs}', 'h', 'a cart', 'm', 'apples')
    for (const key of ['hf:{later}', 'hf:{theirs}']) await redisCommand(server, 'PEXPIRE', key, 100_000_000)
    await redisCommand(server, 'SET', 'hf:{text}', 'x')
    const lease = await holdfasts[0]!.mutex('ours').acquire()
    const page = await stores[0]!.list({}, 2_000)
    if ('kind' in page) throw page.cause
    // Somebody may hold what a later version wrote.
    expect(page.names.toSorted()).toEqual(['later', 'ours'])
    await lease.release()
  })

  it('of a vote may have a field more; one of a later version is not touched', async () => {
    const { votes } = stores[0]!
    await votes?.identify(0, 1_000)
    const vote = { name: 'name', id: 'session.1', attempt: 1, ttl: 2_000, probation: 0 }
    const request = { ...vote, tokens: 1, interest: false, owner: 'test' }
    await redisCommand(server, 'HSET', 'hf:v:{name}', 'z', 'something new')
    expect(await votes?.vote(request, 1_000)).toMatchObject({ kind: 'granted' })
    expect(await votes?.release(vote, false, 1_000)).toEqual({ kind: 'released' })
    expect(await redisCommand(server, 'HGET', 'hf:v:{name}', 'z')).toBe('something new')
    await redisCommand(server, 'HSET', 'hf:v:{name}', 'v', '2')
    expect(await votes?.vote({ ...request, attempt: 2 }, 1_000)).toMatchObject({
      kind: 'unknown',
      retryable: false,
    })
  })
})

describe.skipIf(!available('redis') || !available('cc'))(
  'a server whose clock is in the last century',
  () => {
    it('keeps readers and writers apart', async () => {
      const clock = await clockShim()
      clock.jump(-30 * 365 * 86_400_000)
      const server = await redis({ env: clock.env })
      const store = await openRedisStore(server.url)
      const [reader, writer] = [0, 1].map(() => new Holdfast(store, { wait: 300 }))
      const reading = await reader!.readWriteLock('name').read.acquire()
      await expect(writer!.readWriteLock('name').write.acquire()).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
      })
      expect((await writer!.inspect('name')).holders).toHaveLength(1)
      await reading.release()
      await (await writer!.readWriteLock('name').write.acquire()).release()
      for (const holdfast of [reader, writer]) await holdfast?.close()
      await store.close()
      await server.stop()
    })
  },
)

describe.skipIf(!available('redis'))('a list of names', () => {
  it('takes little where nearly all of them are used by nobody', async () => {
    const server = await redis()
    const idle = `for i = ARGV[1] + 1, ARGV[1] + 3000 do
      local key = 'hf:{idle' .. string.format('%d', i) .. '}'
      redis.call('HSET', key, 'f', '1700000000000000 1')
      redis.call('PEXPIRE', key, 80000000)
    end`
    for (let from = 0; from < 30_000; from += 3_000) await redisCommand(server, 'EVAL', idle, 0, from)
    const store = await openRedisStore(server.url)
    const holdfast = new Holdfast(store)
    const leases = await Promise.all(['one', 'two'].map((name) => holdfast.mutex(name).acquire()))
    await redisCommand(server, 'CONFIG', 'RESETSTAT')
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = await store.list(cursor === undefined ? {} : { cursor }, 5_000)
      if ('kind' in page) throw page.cause
      names.push(...page.names)
      ;({ cursor } = page)
    } while (cursor !== undefined)
    expect(names.toSorted()).toEqual(['one', 'two'])
    const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
    expect(Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1])).toBeLessThan(200)
    for (const lease of leases) await lease.release()
    await holdfast.close()
    await store.close()
    await server.stop()
  })
})
