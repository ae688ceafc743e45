import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest } from 'holdfast/store'
import { openRedisStore } from 'holdfast/redis'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const claimOf = (name: string, id: string): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 30_000,
  patience: 5_000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'test',
})
const renewalOf = (name: string, id: string, tokens = 0): RenewRequest => ({
  ...claimOf(name, id),
  tokens,
})

describe.skipIf(!available('redis'))('many renewals at once', () => {
  let server: Server
  beforeAll(async () => void (server = await redis()))
  afterAll(() => server.stop())

  it('each get their own answer, whatever the others are, also from a server that forgot its scripts', async () => {
    const store = await openRedisStore(server.url)
    await store.claim(claimOf('plain', 's.1'), 5_000)
    await store.claim(claimOf('wanted', 's.2'), 5_000)
    await store.claim(claimOf('wanted', 's.3'), 5_000)
    await store.claim(claimOf('other', 't.1'), 5_000)
    const asked = [
      renewalOf('plain', 's.1'),
      renewalOf('wanted', 's.2'),
      renewalOf('wanted', 's.3'),
      renewalOf('other', 's.4'),
      renewalOf('nobody', 's.5'),
      renewalOf('plain', 's.1', 7),
    ]
    for (const flush of [false, true]) {
      if (flush) await redisCommand(server, 'SCRIPT', 'FLUSH')
      expect(await store.renew(asked, 5_000)).toMatchObject([
        { kind: 'renewed', contended: false },
        { kind: 'renewed', contended: true },
        { kind: 'queued' },
        { kind: 'lost' },
        { kind: 'lost' },
        { kind: 'held', count: 7 },
      ])
    }
    await store.close()
  })

  it('are all unknown when the reply gets lost, and all right when they are asked for again', async () => {
    const proxy = await FaultProxy.open({ host: server.host, port: server.port })
    const store = await openRedisStore(`redis://127.0.0.1:${proxy.port}`)
    const names = Array.from({ length: 600 }, (_, number) => `lease-${number}`)
    await Promise.all(names.map(async (name) => store.claim(claimOf(name, 'u.1'), 5_000)))
    const asked = names.map((name) => renewalOf(name, 'u.1'))
    proxy.set('replies', { blackhole: true })
    const lost = await store.renew(asked, 300)
    expect(lost).toHaveLength(600)
    expect(new Set(lost.map(({ kind }) => kind))).toEqual(new Set(['unknown']))
    proxy.heal()
    proxy.reset()
    await expect
      .poll(async () => new Set((await store.renew(asked, 2_000)).map(({ kind }) => kind)), {
        timeout: 20_000,
      })
      .toEqual(new Set(['renewed']))
    await store.close()
    await proxy.close()
  })
})
