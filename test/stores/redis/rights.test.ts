import { readFileSync } from 'node:fs'

import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { ClaimAnswer, ClaimRequest, Store } from 'holdfast/store'
import { openRedisStore, redisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const PAGE = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
const RULE = /^ACL SETUSER locks (.*)$/m.exec(PAGE)?.[1]?.split(' ') ?? []
/** Those that the scripts need, and not the driver. */
const RIGHTS = RULE.filter((right) => /^\+(del|p|t|z|h)(?!ello|ing)/.test(right))

const claimOf = (id: string, more: Partial<ClaimRequest>): ClaimRequest => ({
  name: 'lock',
  id,
  weight: 1,
  capacity: 1,
  ttl: 5_000,
  patience: 5_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
  ...more,
})
const ALL = { name: 'many', weight: 10, capacity: 10 }
const PART = { name: 'many', weight: 1, capacity: 10 }

describe.skipIf(!available('redis'))('a user of the server', () => {
  let server: Server
  beforeAll(async () => void (server = await redis()))
  afterAll(() => server.stop())

  it('has rights in the documentation that are tried here', () => {
    expect(RIGHTS).toContain('+hgetall')
    expect(RIGHTS.length).toBeGreaterThan(15)
  })

  it.each(RIGHTS)('that lacks %s does not get a lock that somebody holds', async (right) => {
    const user = right.replace(/\W/g, '')
    await redisCommand(server, 'FLUSHALL')
    await redisCommand(server, 'ACL', 'SETUSER', user, ...RULE, `-${right.slice(1)}`)
    const client = new Redis(server.port, { username: user, password: 'password' })
    const store: Store = redisStore(client)
    for (const [first, second] of [
      [{}, {}],
      [ALL, PART],
      [PART, ALL],
    ] as const) {
      const answers: ClaimAnswer[] = [
        await store.claim(claimOf('ann.1', first), 2_000),
        await store.claim(claimOf('bob.1', second), 2_000),
      ]
      expect(answers.filter(({ kind }) => kind === 'held').length).toBeLessThan(2)
      await redisCommand(server, 'FLUSHALL')
    }
    client.disconnect()
  })

  it.each(RIGHTS.filter((right) => right !== '+pubsub|numsub'))(
    'that lacks %s is told so when a store is opened',
    async (right) => {
      const user = right.replace(/\W/g, '')
      await redisCommand(server, 'ACL', 'SETUSER', user, ...RULE, `-${right.slice(1)}`)
      const url = `redis://${user}:password@${server.host}:${server.port}`
      await expect(openRedisStore(url)).rejects.toThrow('lists the rights')
    },
  )

  it('that may use some names only gets those also when it asks for others in the same moment', async () => {
    const rule = RULE.map((right) => (right === '~hf:*' ? '~hf:{mine*' : right))
    await redisCommand(server, 'FLUSHALL')
    await redisCommand(server, 'ACL', 'SETUSER', 'some', ...rule)
    const client = new Redis(server.port, { username: 'some', password: 'password' })
    const store: Store = redisStore(client)
    const names = Array.from({ length: 12 }, (_, at) => (at === 7 ? 'theirs' : `mine:${at}`))
    const others = (kind: string): unknown[] =>
      names.map((name) => ({ kind: name === 'theirs' ? 'unknown' : kind }))
    const together = (): Promise<ClaimAnswer[]> =>
      Promise.all(names.map(async (name, at) => store.claim(claimOf(`ann.${at}`, { name }), 2_000)))
    expect(await together()).toMatchObject(others('held'))
    const renewals = names.map((name, at) => ({ ...claimOf(`ann.${at}`, { name }), tokens: 0 }))
    expect(await store.renew(renewals, 2_000)).toMatchObject(others('renewed'))
    const released = await Promise.all(
      names.map(async (name, at) => store.release({ name, id: `ann.${at}` }, undefined, 2_000)),
    )
    expect(released).toMatchObject(others('released').map((answer) => ({ released: answer })))
    client.disconnect()
  })
})
