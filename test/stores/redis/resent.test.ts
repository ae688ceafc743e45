import { createRequire } from 'node:module'

import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'

import type { ClaimRequest, NameInfo } from 'holdfast/store'
import { redisStore } from 'holdfast/redis'
import { FaultProxy } from 'holdfast/testkit'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import { scripts } from '../../../src/stores/redis/scripts.gen.ts'

const claimOf = (id: string): ClaimRequest => ({
  name: 'lock',
  id,
  weight: 1,
  capacity: 1,
  ttl: 60_000,
  patience: 60_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
})

/** `maxRetriesPerRequest: null` is what job queues ask for: the driver repeats a command for as long as it takes. */
describe.skipIf(!available('redis')).each([
  ['', {}],
  [', and has failed before', { commandTimeout: 30 }],
])('a claim that the driver sends again after an outage%s', (_, options) => {
  const setUp = async ({ together = false } = {}) => {
    const server = await redis()
    const proxy = await FaultProxy.open(server)
    const client = new Redis(proxy.port, { maxRetriesPerRequest: null, retryStrategy: () => 20, ...options })
    client.on('error', () => {})
    const store = redisStore(client)
    expect(await store.claim({ ...claimOf('ann.0'), name: 'other' }, 2_000)).toMatchObject({ kind: 'held' })
    // The request is lost with the connection, and the driver keeps it.
    proxy.set('requests', { blackhole: true })
    // Behind the first one they wait for each other, and travel in one script.
    const others = together ? [0, 2, 3].map((at) => ({ ...claimOf(`ann.${at}`), name: `other ${at}` })) : []
    const asked = [...others.slice(0, 1), claimOf('ann.1'), ...others.slice(1)]
    const answers = await Promise.all(asked.map(async (claim) => store.claim(claim, 50)))
    expect(answers).toMatchObject(asked.map(() => ({ kind: 'unknown' })))
    await proxy.refuse()
    proxy.reset()
    await expect.poll(() => client.status).not.toBe('ready')
    const heal = async (): Promise<void> => {
      proxy.heal()
      await proxy.accept()
    }
    const info = async (): Promise<NameInfo> => (await store.inspect('lock', 5_000)) as NameInfo
    const end = async (): Promise<void> => {
      await store.close()
      client.disconnect()
      await proxy.close()
      await server.stop()
    }
    return { server, store, heal, info, end }
  }

  it('is withdrawn if it was given up meanwhile', async () => {
    const { store, heal, info, end } = await setUp()
    expect(await store.withdraw(claimOf('ann.1'), 50)).toMatchObject({ kind: 'unknown' })
    await heal()
    // The driver sends what it kept before anything new, so by now the claim was made.
    expect(await info()).toBeDefined()
    await expect.poll(async () => (await info()).holders).toEqual([])
    expect(await store.claim(claimOf('bob.1'), 2_000)).toMatchObject({ kind: 'held' })
    await end()
  })

  it('is withdrawn also by a server that does not know the script for that any more', async () => {
    const { store, heal, info, end, server } = await setUp({ together: true })
    expect(await store.withdraw(claimOf('ann.1'), 50)).toMatchObject({ kind: 'unknown' })
    // It forgot all, and was asked by others for many things at once.
    await redisCommand(server, 'SCRIPT', 'FLUSH')
    await redisCommand(server, 'SCRIPT', 'LOAD', scripts.many.lua)
    await heal()
    expect(await info()).toBeDefined()
    await expect.poll(async () => (await info()).holders).toEqual([])
    await end()
  })

  it('is kept if it is still wanted', async () => {
    const { store, heal, info, end } = await setUp()
    await heal()
    expect(await store.claim(claimOf('ann.1'), 5_000)).toMatchObject({ kind: 'held' })
    for (let look = 0; look < 5; look++) expect((await info()).holders).toHaveLength(1)
    await end()
  })
})

/** It does so unless it is told otherwise (`autoResendUnfulfilledCommands`). What was done already is not there any more. */
describe.skipIf(!available('redis')).each(['ioredis', 'ioredis-6', 'iovalkey'])(
  'a release whose answer is lost, and that %s sends again',
  (name) => {
    it.each([
      ['that nobody waits for', undefined],
      ['that somebody waits for', 'bob.1'],
      ['that is asked for again', 'ann.2'],
    ])('says of a lock %s that it is not known, and not that the lease had ended', async (_, next) => {
      await using server = await redis()
      const proxy = await FaultProxy.open(server)
      const driver = createRequire(import.meta.url)(name) as { readonly Redis: typeof Redis }
      const client = new driver.Redis(proxy.port, { retryStrategy: () => 20 })
      client.on('error', () => {})
      const store = redisStore(client)
      const ann = claimOf('ann.1')
      expect(await store.claim(ann, 2_000)).toMatchObject({ kind: 'held' })
      if (next === 'bob.1') await store.claim({ ...claimOf(next), whenBusy: 'queue' }, 2_000)
      const again: ClaimRequest | undefined =
        next === 'ann.2' ? { ...claimOf(next), whenBusy: 'queue' } : undefined
      const cut = proxy.cutReply()
      const answer = await store.release({ ...ann, uncontended: next === undefined }, again, 5_000)
      await cut
      expect(answer.released).toMatchObject({ kind: 'unknown' })
      expect(answer.next?.kind).toBe(again && 'held')
      // What was asked once, and answered, is known.
      expect(await store.release(ann, undefined, 2_000)).toEqual({ released: { kind: 'not-held' } })
      await store.close()
      client.disconnect()
      await proxy.close()
    })
  },
)
