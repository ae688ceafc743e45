import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { ClaimRequest, Store } from 'holdfast/store'
import { openRedisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const claimOf = (name: string): ClaimRequest => ({
  name,
  id: `session.${name}`,
  weight: 1,
  capacity: 1,
  ttl: 5_000,
  patience: 1_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})
const NAMES = Array.from({ length: 20 }, (_, number) => `name-${number}`)

/** Sent in one moment, so that they travel together. */
describe.skipIf(!available('redis'))('a key of another type among many', () => {
  let server: Server
  let store: Store
  beforeAll(async () => {
    server = await redis()
    store = await openRedisStore(server.url)
  })
  afterAll(async () => {
    await store.close()
    await server.stop()
  })
  const together = async (ask: (name: string) => unknown): Promise<unknown[]> =>
    Promise.all(NAMES.map(async (name) => ask(name)))
  const others = (kind: string): unknown[] =>
    NAMES.map((name) => ({ kind: name === 'name-7' ? 'unknown' : kind }))

  it('refuses its own claim, and no other', async () => {
    await redisCommand(server, 'SET', 'hf:{name-7}', 'not ours')
    expect(await together((name) => store.claim(claimOf(name), 2_000))).toMatchObject(others('held'))
    const renewals = NAMES.map((name) => ({ ...claimOf(name), tokens: 0 }))
    expect(await store.renew(renewals, 2_000)).toMatchObject(others('renewed'))
    const releases = await together((name) => store.release(claimOf(name), undefined, 2_000))
    expect(releases).toMatchObject(others('released').map((released) => ({ released })))
    expect(await redisCommand(server, 'GET', 'hf:{name-7}')).toBe('not ours')
  })

  it('refuses its own vote, and extends the others', async () => {
    await redisCommand(server, 'SET', 'hf:v:{name-7}', 'not ours')
    await store.votes?.identify?.(0, 2_000)
    const ask = { attempt: 1, ttl: 5_000, probation: 0, owner: 'test', interest: false, tokens: 1 }
    const voted = await together((name) => store.votes?.vote({ ...claimOf(name), ...ask }, 2_000))
    expect(voted).toMatchObject(others('granted'))
    const claims = voted.map((answer, at) => {
      const { token = 1n } = answer as { token?: bigint }
      return { ...claimOf(NAMES[at] ?? ''), ...ask, tokens: 0, token, top: token, mode: 'renew' as const }
    })
    expect(await store.votes?.extend(claims as never, 2_000)).toMatchObject(others('renewed'))
  })
})
