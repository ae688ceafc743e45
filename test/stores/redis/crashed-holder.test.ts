import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { ALL } from 'holdfast/store'
import type { ClaimRequest } from 'holdfast/store'
import { openRedisStore } from 'holdfast/redis'

import { available, redis } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

/** What a process that died left: it neither renews nor releases. */
const LEFT: ClaimRequest = {
  name: 'lock',
  id: 'dead.1',
  weight: 1,
  capacity: 1,
  ttl: 1_000,
  patience: 1_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
}

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'the lock of a process that died, through %s',
  (driver) => {
    let server: Server
    beforeAll(async () => void (server = await redis()))
    afterAll(() => server.stop())

    it.each([
      ['that had it to itself', { name: 'mutex' }, 'mutex'],
      ['that shared it', { name: 'read-write', capacity: ALL }, 'write'],
    ] as const)('%s goes to whoever waits when the lease ends', async (_, left, kind) => {
      const store = await openRedisStore(server.url, { driver })
      // Signs of life are ten seconds apart.
      const holdfast = new Holdfast(store, { ttl: 30_000, patience: 30_000 })
      expect(await store.claim({ ...LEFT, ...left }, 2_000)).toMatchObject({ kind: 'held' })
      const lock = kind === 'mutex' ? holdfast.mutex(left.name) : holdfast.readWriteLock(left.name).write
      const began = performance.now()
      const lease = await lock.acquire()
      // A few milliseconds after the second on a machine that has time.
      expect(performance.now() - began).toBeLessThan(5_000)
      await lease.release()
      await holdfast.close()
      await store.close()
    })
  },
)
