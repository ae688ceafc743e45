import { readFileSync } from 'node:fs'

import { Redis } from 'ioredis'
import { createSentinel } from 'redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { openRedisStore, prepareDurableFencing, redisStore } from 'holdfast/redis'

import { available, clockShim, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const SAFE = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction']

describe.skipIf(!available('redis'))('durable fencing', () => {
  let server: Server
  const opened: Holdfast[] = []
  const open = async (): Promise<Holdfast> => {
    const holdfast = new Holdfast(await openRedisStore(server.url, { fencing: 'durable' }), {
      requestTimeout: 1_000,
    })
    opened.push(holdfast)
    return holdfast
  }
  const prepare = async (): Promise<void> => {
    const client = new Redis(server.port)
    await prepareDurableFencing(client).finally(() => client.disconnect())
  }
  const tokenOf = async (holdfast: Holdfast): Promise<bigint> =>
    holdfast.mutex('job').run(({ token }) => token)

  beforeEach(async () => void (server = await redis({ args: SAFE })))
  afterEach(async () => {
    for (const holdfast of opened.splice(0)) {
      await holdfast.close({ drain: 0 })
      await holdfast.store.close()
    }
    await server.stop()
  })

  it('counts, whatever the clock says, and goes on counting after a crash', async () => {
    await prepare()
    const before = await open()
    const first = await tokenOf(before)
    const second = await tokenOf(before)
    expect(second).toBeGreaterThan(first)
    await server.kill('SIGKILL')
    await server.restart()
    const after = await open()
    const third = await tokenOf(after)
    expect(third).toBeGreaterThan(second)
    expect(third - first).toBeLessThan(1_000n)
  })

  it.skipIf(!available('cc'))(
    'counts on when the clock jumps by thirty years, to the past or the future',
    async () => {
      await server.stop()
      const clock = await clockShim()
      const thirtyYears = 30 * 365 * 86_400_000
      clock.jump(-thirtyYears)
      server = await redis({ args: SAFE, env: clock.env })
      await prepare()
      const holdfast = await open()
      const tokens = [await tokenOf(holdfast)]
      for (const jump of [thirtyYears, thirtyYears, -thirtyYears]) {
        clock.jump(jump)
        // Valkey 9 goes by the time of before for one more command: a lease that began with that would be over at once.
        await redisCommand(server, 'PING')
        tokens.push(await tokenOf(holdfast))
      }
      expect(tokens.every((token, at) => at === 0 || token > (tokens[at - 1] ?? 0n))).toBe(true)
    },
  )

  it('waits for the end of a transaction that the owner of its client has begun', async () => {
    await prepare()
    const client = new Redis(server.port)
    const holdfast = new Holdfast(redisStore(client, { fencing: 'durable' }), { wait: 20_000 })
    await client.multi({ pipeline: false })
    const problems: unknown[] = []
    const acquiring = holdfast.mutex('job').run(({ token }) => token)
    acquiring.catch((error: unknown) => problems.push(error))
    const asked = async (): Promise<boolean> =>
      / cmd=config\|get /.test(String(await redisCommand(server, 'CLIENT', 'LIST')))
    await expect.poll(asked).toBe(true)
    await client.exec()
    expect(await acquiring).toBeGreaterThan(0n)
    expect(problems).toEqual([])
    await holdfast.close()
    await holdfast.store.close()
    client.disconnect()
  })

  it('never gives a token below those of processes with the other fencing, before, beside or after them', async () => {
    const hybrid = new Holdfast(await openRedisStore(server.url))
    opened.push(hybrid)
    const tokens = [await tokenOf(hybrid)]
    await prepare()
    const durable = await open()
    for (const fleet of [durable, hybrid, durable, hybrid, hybrid, durable]) tokens.push(await tokenOf(fleet))
    // Readers and permits take theirs another way.
    for (const fleet of [durable, hybrid, durable])
      tokens.push(await fleet.readWriteLock('job2').read.run(({ token }) => token))
    expect(tokens.every((token, at) => at === 0 || token > (tokens[at - 1] ?? 0n))).toBe(true)
    // A name that the other fencing has used, and of which nothing is kept any more.
    const last = await tokenOf(hybrid)
    await redisCommand(server, 'DEL', 'hf:{job}')
    expect(await hybrid.mutex('job').run(({ token }) => token)).toBeLessThan(last)
    await redisCommand(server, 'DEL', 'hf:{job}')
    expect(await tokenOf(durable)).toBeGreaterThan(last)
  })

  it('needs no more rights than the documentation says', async () => {
    await prepare()
    const page = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
    const rule = /^ACL SETUSER locks (.*)$/m.exec(page)?.[1]?.split(' ') ?? []
    const more = /`([^`]*)` and `([^`]*)` for `durable`/.exec(page)?.slice(1).join(' ').split(' ') ?? []
    await redisCommand(server, 'ACL', 'SETUSER', 'locks', ...rule, ...more)
    const url = `redis://locks:password@${server.host}:${server.port}`
    const holdfast = new Holdfast(await openRedisStore(url, { fencing: 'durable' }))
    opened.push(holdfast)
    expect(await tokenOf(holdfast)).toBeGreaterThan(0n)
    // And says when it is opened that one is missing.
    await redisCommand(server, 'ACL', 'SETUSER', 'locks', '-incrby')
    await expect(openRedisStore(url, { fencing: 'durable' })).rejects.toThrow('NOPERM')
  })

  it('serves queues, readers and permits like any other', async () => {
    await prepare()
    const [one, two] = [await open(), await open()]
    const lease = await one.mutex('line').acquire()
    const waiting = two.mutex('line').acquire()
    await expect.poll(async () => (await one.inspect('line')).waiters.length).toBe(1)
    await lease.release()
    expect((await waiting).token).toBeGreaterThan(lease.token)
    const permits = await Promise.all([one, two].map((holdfast) => holdfast.semaphore('pool', 2).acquire()))
    expect(permits.map(({ held }) => held)).toEqual([true, true])
  })

  it('refuses a server that was never prepared', async () => {
    await expect(open()).rejects.toThrow(/prepareDurableFencing/)
  })

  it('refuses a server that has lost its data, also while it is in use', async () => {
    await prepare()
    const holdfast = await open()
    await tokenOf(holdfast)
    await redisCommand(server, 'FLUSHALL')
    await expect(tokenOf(holdfast)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { message: expect.stringContaining('lost its data') as string },
    })
    expect(await redisCommand(server, 'KEYS', '*')).toEqual([])
  })

  it.each([
    ['appendonly', 'no', /appendonly/],
    ['appendfsync', 'everysec', /appendfsync/],
    ['maxmemory-policy', 'allkeys-lru', /noeviction/],
  ])('refuses a server with %s %s', async (setting, value, reason) => {
    await prepare()
    await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', '100mb')
    await redisCommand(server, 'CONFIG', 'SET', setting, value)
    await expect(prepare()).rejects.toThrow(reason)
    await expect(open()).rejects.toThrow(reason)
  })
})

/** After a failover a replica that lags would give the same tokens again. */
describe('durable fencing through Sentinels', () => {
  const refusal = { code: 'UNSUPPORTED', message: expect.stringContaining('needs one server') as string }
  const at = { host: '127.0.0.1', port: 1 }
  const clients = {
    ioredis: () => new Redis({ sentinels: [at], name: 'primary', lazyConnect: true }),
    redis: () => createSentinel({ name: 'primary', sentinelRootNodes: [at] }),
  }

  it.each(Object.keys(clients))('is refused by URL, through %s', async (driver) => {
    const url = `redis+sentinel://${at.host}:${at.port}/primary?fencing=durable&driver=${driver}`
    await expect(openRedisStore(url)).rejects.toMatchObject(refusal)
  })

  it.each(Object.entries(clients))(
    'is refused on a client of %s, and nothing is prepared',
    async (_, make) => {
      const client = make()
      expect(() => redisStore(client, { fencing: 'durable' })).toThrow(expect.objectContaining(refusal))
      await expect(prepareDurableFencing(client)).rejects.toMatchObject(refusal)
      expect(redisStore(client).kind).toBe('redis')
    },
  )
})
