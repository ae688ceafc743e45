import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { fencedWrite, redisStore } from 'holdfast/redis'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { COMBINATIONS } from './driver-matrix.ts'
import type { Place } from './driver-matrix.ts'

const socket = join(tmpdir(), `holdfast-matrix-${process.pid}.sock`)
const ROUNDS = 5

/** Every driver with every option that people set: a short fight, a loss that is told, a write that is fenced. */
describe.skipIf(!available('redis'))('a client of', () => {
  let server: Server
  let place: Place
  beforeAll(async () => {
    server = await redis({ args: ['--unixsocket', socket] })
    place = { port: server.port, socket }
  })
  afterAll(() => server.stop())

  it.concurrent.each(COMBINATIONS)('$label', async ({ label, connect }) => {
    const prefix = label.replaceAll(/\W+/g, '-')
    const clients = await Promise.all([0, 1].map(() => connect(place)))
    const stores = clients.map(({ client }) => redisStore(client, { prefix }))
    const holdfasts = stores.map((store) => new Holdfast(store, { ttl: 3_000, wait: 20_000 }))
    let inside = 0
    const tokens: bigint[] = []
    await Promise.all(
      holdfasts.map(async (holdfast) => {
        for (let round = 0; round < ROUNDS; round++) {
          const lease = await holdfast.mutex('one').acquire()
          expect(++inside).toBe(1)
          tokens.push(lease.token)
          await new Promise(setImmediate)
          inside--
          expect(await lease.release()).toBe('released')
          await holdfast.semaphore('pool', 2).run(() => {})
        }
      }),
    )
    expect(tokens.length).toBe(2 * ROUNDS)
    expect(tokens.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(tokens)

    const [client] = clients
    const write = { key: `{${prefix}}`, value: 'x', token: 7n }
    expect(await fencedWrite(client!.client, write)).toEqual({ accepted: true, token: 7n })
    expect(await fencedWrite(client!.client, { ...write, token: 6n })).toEqual({ accepted: false, token: 7n })

    // A lease whose record is gone is lost with the next renewal, and not when its time is up.
    const [holdfast] = holdfasts
    const lease = await holdfast!.mutex('lost').acquire({ ttl: 900 })
    const removed = await redisCommand(
      server,
      'EVAL',
      `for db = 0, 3 do redis.call('SELECT', db)
       for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. ':{lost}')) do redis.call('DEL', key) end end`,
      0,
      prefix,
    )
    expect(removed).toBe(null)
    if (!lease.signal.aborted) await once(lease.signal, 'abort')
    expect(String(lease.signal.reason)).toContain('does not know it any more')

    for (const one of holdfasts) await one.close()
    for (const store of stores) await store.close()
    for (const { end } of clients) await end()
  })
})
