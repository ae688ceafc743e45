import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Store, StoreEvent } from 'holdfast/store'

import { available, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { openAt, request, startServers, stopAll } from './kit.ts'
import { votesLeftAt } from './leftovers.ts'

const TIMEOUT = 5_000

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  'a release with nobody behind it, through %s',
  (driver) => {
    let servers: Server[]
    let store: Store
    beforeAll(async () => {
      servers = await startServers(3)
      store = await openAt(servers, { driver })
    })
    afterAll(async () => {
      await store.close()
      await stopAll(servers)
    })

    const calls = async (command: string): Promise<number> => {
      const [server] = servers as [Server]
      const stats = String(await redisCommand(server, 'INFO', 'commandstats'))
      return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
    }
    const nothingLeft = async (): Promise<void> => {
      await expect.poll(async () => (await Promise.all(servers.map(votesLeftAt))).flat()).toEqual([])
    }

    it('needs no script', async () => {
      const holdfast = new Holdfast(store, { ttl: 1_000 })
      await (await holdfast.mutex('warm').acquire()).release()
      await nothingLeft()
      const rounds = 20
      const [scripts, deletions] = [await calls('evalsha'), await calls('hdel')]
      for (let round = 0; round < rounds; round++) {
        expect(await (await holdfast.mutex('x').acquire()).release()).toBe('released')
      }
      await nothingLeft()
      // Where a new second began, there is one more script, in which the servers agree.
      expect((await calls('evalsha')) - scripts).toBeLessThan(rounds * 1.5)
      expect((await calls('hdel')) - deletions).toBeGreaterThanOrEqual(rounds - 1)
      await holdfast.close()
    })

    it('still wakes somebody that nobody has told it of', async () => {
      const told: StoreEvent[] = []
      const watch = await store.watch('b', (event) => told.push(event), TIMEOUT)
      expect((await store.claim(request('y', 'a.1'), TIMEOUT)).kind).toBe('held')
      expect((await store.claim(request('y', 'b.1'), TIMEOUT)).kind).toBe('busy')
      const { released } = await store.release(
        { name: 'y', id: 'a.1', uncontended: true },
        undefined,
        TIMEOUT,
      )
      expect(released.kind).toBe('released')
      await expect.poll(() => told).toEqual([{ kind: 'freed', name: 'y' }])
      await nothingLeft()
      if (watch.kind === 'watching') watch.stop()
    })

    it('takes nothing from somebody else, and says so', async () => {
      await store.claim(request('z', 'a.2', 20), TIMEOUT)
      await expect.poll(async () => (await store.claim(request('z', 'b.2'), TIMEOUT)).kind).toBe('held')
      const { released } = await store.release(
        { name: 'z', id: 'a.2', uncontended: true },
        undefined,
        TIMEOUT,
      )
      expect(released.kind).toBe('not-held')
      expect(await store.inspect('z', TIMEOUT)).toMatchObject({ holders: [{ id: 'b.2' }] })
      await store.release({ name: 'z', id: 'b.2' }, undefined, TIMEOUT)
    })

    it('leaves a fence behind, above which the next one begins', async () => {
      const tokens: bigint[] = []
      for (const id of ['a.3', 'a.4', 'b.3']) {
        const answer = await store.claim({ ...request('f', id), tokens: 8 }, TIMEOUT)
        if (answer.kind !== 'held') throw new Error(`it was ${answer.kind}`)
        tokens.push(answer.token)
        await store.release({ name: 'f', id, uncontended: true }, undefined, TIMEOUT)
      }
      const [first = 0n, second = 0n, third = 0n] = tokens
      expect(second - first).toBeGreaterThanOrEqual(8n)
      expect(third - second).toBeGreaterThanOrEqual(8n)
    })
  },
)
