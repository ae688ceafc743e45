import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { ClaimRequest } from '../../../src/core/contract.ts'
import { openRedisStore } from '../../../src/stores/redis/index.ts'
import { scripts } from '../../../src/stores/redis/scripts.gen.ts'
import type { Script } from '../../../src/stores/redis/scripts.gen.ts'

describe.skipIf(!available('redis'))('the scripts', () => {
  let server: Server
  beforeAll(async () => void (server = await redis()))
  afterAll(() => server.stop())

  it.each(Object.entries<Script>({ ...scripts }))(
    '%s has the hash that the server gives it',
    async (_, { sha1, lua }) => {
      expect(await redisCommand(server, 'SCRIPT', 'LOAD', lua)).toBe(sha1)
    },
  )

  it('take no longer when ten thousand wait, wherever in the line something happens', async () => {
    const store = await openRedisStore(server.url)
    const claim = (number: number): ClaimRequest => ({
      name: 'popular',
      id: `session.${number}`,
      weight: 1,
      capacity: 1,
      ttl: 60_000,
      patience: 60_000,
      tokens: 1,
      whenBusy: 'queue',
      owner: 'host',
    })
    const ids = Array.from({ length: 10_001 }, (_, number) => number)
    const answers = await Promise.all(ids.map(async (number) => store.claim(claim(number), 30_000)))
    expect(answers.filter(({ kind }) => kind === 'queued').length).toBe(10_000)

    const perCommand = async (work: (number: number) => Promise<unknown>, count = 500): Promise<number> => {
      await redisCommand(server, 'CONFIG', 'RESETSTAT')
      for (let i = 0; i < count; i++) await work(5_000 + i)
      const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
      return Number(/cmdstat_evalsha:.*?usec_per_call=([\d.]+)/.exec(stats)?.[1])
    }
    const renewing = await perCommand(async (number) =>
      store.renew([{ ...claim(number), tokens: 0 }], 30_000),
    )
    const leaving = await perCommand(async (number) => store.release(claim(number), undefined, 30_000))
    // A line of which every place had to be looked at would take milliseconds.
    expect(renewing).toBeLessThan(500)
    expect(leaving).toBeLessThan(500)
    const info = await store.inspect('popular', 30_000)
    expect('waiters' in info && info.waiters.length).toBe(9_500)
    await store.close()
  })
})
