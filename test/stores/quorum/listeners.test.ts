import { setImmediate as later, setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'

import { available } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { openAt, request, startServers, stopAll } from './kit.ts'

/** More at once than Node lets pass without a word. */
const MANY = Array.from({ length: 30 }, (_, at) => at)

describe.skipIf(!available('redis')).each(['ioredis', 'redis'] as const)(
  '%s is not listened to',
  (driver) => {
    let servers: Server[]
    let warnings: string[]
    const warned = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`)

    const complaints = async (): Promise<string[]> => {
      await later()
      return warnings
    }

    beforeAll(async () => void (servers = await startServers(3)))
    afterAll(() => stopAll(servers))
    beforeEach(() => {
      warnings = []
      process.on('warning', warned)
    })
    afterEach(() => {
      process.off('warning', warned)
    })

    it('by every request to a server that was never there', async () => {
      const nowhere = { host: '127.0.0.1', port: 1 }
      const holdfast = new Holdfast(await openAt([...servers.slice(1), nowhere], { driver }), {
        closeStore: true,
        ttl: 1_000,
      })
      await Promise.all(MANY.map(async (at) => (await holdfast.mutex(`x ${at}`).acquire()).release()))
      await holdfast.close()
      expect(await complaints()).toEqual([])
    })

    it('by every request that a silent server leaves unanswered', async () => {
      const store = await openAt(servers, { driver })
      const [silent] = servers as [Server]
      await silent.pause()
      // So long that each one alone is reason enough to drop the connection.
      await Promise.all(MANY.map(async (at) => store.release(request(`x ${at}`), undefined, 1_100)))
      await silent.resume()
      await store.close()
      expect(await complaints()).toEqual([])
    })

    it('by every request that is under way when the store is closed', async () => {
      const store = await openAt(servers, { driver })
      const [silent] = servers as [Server]
      await silent.pause()
      const answers = MANY.map(async (at) => store.release(request(`x ${at}`), undefined, 10_000))
      await sleep(50)
      await store.close()
      await Promise.all(answers)
      await silent.resume()
      expect(await complaints()).toEqual([])
    })
  },
)
