import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import type { Lease } from 'holdfast'
import { fencedWrite, openRedisStore } from 'holdfast/redis'
import { checkExclusivity, checkTokenOrder, holdsOf, Recorder } from 'holdfast/testkit'

import { available, clockShim, redis, redisCommand } from '../../../scripts/services.mjs'
import type { ClockShim, Server } from '../../../scripts/services.mjs'

/** Two processes, a server for their lock, and another one for what the lock guards. */
class Stage {
  readonly recorder = new Recorder('both')
  readonly holdfasts: Holdfast[] = []
  readonly clients: Redis[] = []
  readonly resource: Server
  readonly server: Server

  constructor(server: Server, resource: Server) {
    this.server = server
    this.resource = resource
  }

  async take(): Promise<{ lease: Lease; write: (value: string) => Promise<boolean>; believes: () => void }> {
    const holdfast = new Holdfast(await openRedisStore(this.server.url), { ttl: 20_000, renew: false })
    const client = new Redis(this.resource.port)
    this.holdfasts.push(holdfast)
    this.clients.push(client)
    const story = this.recorder.acquire('lock')
    const lease = await holdfast.mutex('lock').acquire({ wait: 2_000 })
    story.acquired(lease)
    return {
      lease,
      write: async (value) =>
        (await fencedWrite(client, { key: 'guarded', value, token: lease.token })).accepted,
      believes: () => {
        lease.assertHeld()
        story.check(lease)
      },
    }
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.disconnect()
    for (const holdfast of this.holdfasts) {
      await holdfast.close({ drain: 0 })
      await holdfast.store.close()
    }
    await this.server.stop()
    await this.resource.stop()
  }
}

describe.skipIf(!available('redis') || !available('cc'))('where Redis cannot keep two holders apart', () => {
  let stage: Stage
  let clock: ClockShim
  beforeEach(async () => {
    clock = await clockShim()
    stage = new Stage(await redis({ env: clock.env }), await redis())
  })
  afterEach(async () => {
    await stage.close()
    clock.dispose()
  })

  const faults: [what: string, fault: () => Promise<void>][] = [
    ['a server that lost its data', () => stage.server.restart({ keepData: false })],
    ['FLUSHALL', async () => void (await redisCommand(stage.server, 'FLUSHALL'))],
    ['the eviction of the lock', async () => void (await redisCommand(stage.server, 'DEL', 'hf:{lock}'))],
    ['a clock of the server that jumps forward', async () => clock.jump(60_000)],
  ]

  it.each(faults)(
    '%s gives the lock to a second one, and only the first one’s token keeps it out',
    async (_, fault) => {
      const first = await stage.take()
      expect(await first.write('first')).toBe(true)

      await fault()
      const second = await stage.take()
      first.believes()
      expect(checkExclusivity(holdsOf(stage.recorder.events))).not.toEqual([])

      expect(second.lease.token).toBeGreaterThan(first.lease.token)
      expect(checkTokenOrder(holdsOf(stage.recorder.events))).toEqual([])
      expect(await second.write('second')).toBe(true)
      expect(await first.write('late')).toBe(false)
      expect(await redisCommand(stage.resource, 'GET', 'guarded')).toBe('second')
    },
  )

  it('tokens grow also when the clock of the server goes back by an hour', async () => {
    const first = await stage.take()
    expect(await first.lease.release()).toBe('released')
    clock.jump(-3_600_000)
    const second = await stage.take()
    expect(second.lease.token).toBeGreaterThan(first.lease.token)
    expect(await second.lease.release()).toBe('released')
    const third = await stage.take()
    expect(third.lease.token).toBeGreaterThan(second.lease.token)
  })
})
