import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { afterEach, describe, expect, it } from 'vitest'

import { available, clockShim } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { memcached } from '../../../scripts/services/memcached.mjs'
import { validUntil } from '../../../src/core/validity.ts'
import { Holdfast } from '../../../src/index.ts'
import {
  afterwards,
  builds,
  command,
  open,
  request,
  sleep,
  take,
  talk,
  TIMEOUT_MS,
  undoAll,
  until,
} from './kit.ts'
import type { Place } from './kit.ts'

afterEach(undoAll)

/** Small values until the server is full or has evicted what was there. */
async function fill(at: Place, count: number): Promise<void> {
  for (let from = 0; from < count; from += 10_000) {
    let bytes = ''
    for (let i = from; i < from + 10_000; i += 1) bytes += `ms filler${i} 20 T0 q\r\n12345678901234567890\r\n`
    await talk(at, `${bytes}mn\r\n`, (text) => text.includes('MN\r\n'))
  }
}

describe.skipIf(!available('memcached')).each(builds)('faults of $label', ({ command: path }) => {
  async function start(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Server> {
    const server = await memcached({ args, env, ...(path === undefined ? {} : { command: path }) })
    afterwards(() => server.stop())
    return server
  }

  it('a restart ends every lock: the holder is told, the next one has a larger token, and nobody releases another’s', async () => {
    const server = await start()
    const [a, b] = [open(server), open(server)]
    // The first claim on an empty server, before and after: both items get the same CAS value from it.
    const before = request('restart')
    const first = await take(a, before)
    await server.restart()
    const after = request('restart')
    const second = await until('granted', async () => {
      const answer = await b.claim(after, TIMEOUT_MS)
      return answer.kind === 'held' ? answer : undefined
    })
    expect(second.token).toBeGreaterThan(first.token)
    const released = await until('answered', async () => {
      const answer = (await a.release(before, undefined, TIMEOUT_MS)).released
      return answer.kind === 'unknown' ? undefined : answer
    })
    expect(released.kind).toBe('not-held')
    expect(await a.renew([before], TIMEOUT_MS)).toEqual([{ kind: 'lost' }])
    expect(await b.renew([{ ...after, tokens: 0 }], TIMEOUT_MS)).toMatchObject([{ kind: 'renewed' }])
  })

  it('a lease learns of a restart with its next renewal', async () => {
    const server = await start()
    const holdfast = new Holdfast(open(server), { ttl: 3000 })
    afterwards(() => holdfast.close())
    const lease = await holdfast.mutex('told').acquire()
    await server.restart()
    await until('the signal aborts', async () => lease.signal.aborted || undefined, 3000)
    expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' })
  })

  it('a lock that was evicted is lost, and the next holder has a larger token although its counter was evicted too', async () => {
    const server = await start(['-m', '4'])
    const [a, b] = [open(server), open(server)]
    const held = request('evicted', { ttl: 60_000 })
    const { token } = await take(a, held)
    await fill(server, 200_000)
    expect(await command(server, 'mg holdfast:l:evicted')).toBe('EN')
    const next = await until('granted', async () => {
      const answer = await b.claim(request('evicted'), TIMEOUT_MS)
      return answer.kind === 'held' ? answer : undefined
    })
    expect(next.token).toBeGreaterThan(token)
    const answer = await until('answered', async () => {
      const [renewed] = await a.renew([held], TIMEOUT_MS)
      return renewed?.kind === 'unknown' ? undefined : renewed
    })
    expect(answer).toEqual({ kind: 'lost' })
  })

  it('a full server that does not evict refuses new locks and keeps the old ones', async () => {
    const server = await start(['-M', '-m', '4'])
    const [a, b] = [open(server), open(server)]
    const held = request('kept', { ttl: 60_000 })
    await take(a, held)
    await fill(server, 100_000)
    const refused = await b.claim(request('new'), TIMEOUT_MS)
    expect(refused.kind === 'unknown' && String(refused.cause)).toContain('out of memory')
    for (let poll = 0; poll < 20; poll += 1) {
      expect((await b.claim(request('kept'), TIMEOUT_MS)).kind).toBe('busy')
    }
    // Without memory it cannot be renewed in the very moment in which a rival reads it.
    const renewed = await until('answered', async () => {
      const [answer] = await a.renew([{ ...held, tokens: 0 }], TIMEOUT_MS)
      return answer?.kind === 'unknown' ? undefined : answer
    })
    expect(renewed.kind).toBe('renewed')
    expect((await a.release(held, undefined, TIMEOUT_MS)).released.kind).toBe('released')
  })

  it('a server that was stopped grants nothing that ends before its holder believes', async () => {
    const server = await start()
    const [a, b] = [open(server), open(server)]
    await take(a, request('warm'))
    for (let round = 0; round < 3; round += 1) {
      await server.pause()
      await sleep(6000)
      const name = `stopped-${round}`
      const sentAt = performance.now()
      const answer = a.claim(request(name, { ttl: 2000 }), TIMEOUT_MS)
      await sleep(50)
      await server.resume()
      if ((await answer).kind !== 'held') continue
      const end = validUntil(sentAt, 2000, a.capabilities.earlyExpiry)
      while (performance.now() < end) {
        expect((await b.claim(request(name), TIMEOUT_MS)).kind).toBe('busy')
        await sleep(5)
      }
    }
    // And it is usable again.
    await until('granted', async () =>
      (await a.claim(request('again'), TIMEOUT_MS)).kind === 'held' ? true : undefined,
    )
  }, 60_000)

  it('a claim that a stopped server executes after its withdrawal leaves no ghost', async () => {
    const server = await start()
    const [a, b] = [open(server), open(server)]
    await take(a, request('warm'))
    await take(b, request('warmer'))
    const late = request('ghost')
    await server.pause()
    const answer = await a.claim(late, 300)
    expect(answer.kind).toBe('unknown')
    // On another connection: the server may well read it first.
    const withdrawn = b.withdraw(late, 5000)
    await sleep(50)
    await server.resume()
    expect((await withdrawn).kind).not.toBe('unknown')
    await sleep(100)
    expect((await b.claim(request('ghost'), TIMEOUT_MS)).kind).toBe('held')
  })

  it('a renewal that another reader keeps the server from making is not reported as made', async () => {
    const server = await start()
    const store = open(server)
    const held = request('read', { ttl: 10_000 })
    await take(store, held)
    // A reader that asks for the value and does not take it keeps the item in use.
    const reader: Socket = connect(server.port, server.host).pause()
    afterwards(() => reader.destroy())
    reader.on('error', () => undefined)
    reader.write('mg holdfast:l:read v k\r\n'.repeat(400_000))
    await until('the reader is stuck', async () => {
      const before = reader.writableLength
      await sleep(500)
      return before > 0 && reader.writableLength === before ? true : undefined
    })
    const [answer] = await store.renew([{ ...held, ttl: 60_000, tokens: 0 }], TIMEOUT_MS)
    const left = Number((await command(server, 'mg holdfast:l:read t')).slice(4))
    expect([answer?.kind, left > 60]).toEqual(
      answer?.kind === 'renewed' ? ['renewed', true] : ['unknown', false],
    )
    reader.destroy()
    const again = await until('renewed', async () => {
      const [renewed] = await store.renew([{ ...held, ttl: 60_000, tokens: 0 }], TIMEOUT_MS)
      return renewed?.kind === 'unknown' ? undefined : renewed
    })
    expect(again.kind).toBe('renewed')
    expect(Number((await command(server, 'mg holdfast:l:read t')).slice(4))).toBeGreaterThan(60)
    expect((await store.release(held, undefined, TIMEOUT_MS)).released.kind).toBe('released')
  })

  it('who takes the place of a withdrawn claim has its own ttl, also when somebody reads meanwhile', async () => {
    const server = await start()
    const [a, b] = [open(server), open(server)]
    await a.withdraw(request('grave'), TIMEOUT_MS)
    const reader: Socket = connect(server.port, server.host).pause()
    afterwards(() => reader.destroy())
    reader.on('error', () => undefined)
    reader.write('mg holdfast:l:grave v k\r\n'.repeat(400_000))
    await until('the reader is stuck', async () => {
      const before = reader.writableLength
      await sleep(100)
      return before > 0 && reader.writableLength === before ? true : undefined
    })
    // Else a holder that dies keeps the lock from everybody for as long as the tombstone was to stay.
    const held = request('grave', { ttl: 3000 })
    expect((await b.claim(held, TIMEOUT_MS)).kind).toBe('held')
    expect(Number((await command(server, 'mg holdfast:l:grave t')).slice(4))).toBeLessThan(10)
    expect((await b.release(held, undefined, TIMEOUT_MS)).released.kind).toBe('released')
  })

  it('flush_all ends every lock, and the store goes on', async () => {
    const server = await start()
    const store = open(server)
    const held = request('flushed')
    const { token } = await take(store, held)
    await command(server, 'flush_all')
    await sleep(1100)
    const answer = await until('answered', async () => {
      const [renewed] = await store.renew([held], TIMEOUT_MS)
      return renewed?.kind === 'unknown' ? undefined : renewed
    })
    expect(answer).toEqual({ kind: 'lost' })
    expect((await take(store, request('flushed'))).token).toBeGreaterThan(token)
  })

  it.skipIf(!available('cc'))('a jump of the server’s wall clock does not end a lock', async () => {
    const shim = await clockShim()
    afterwards(() => shim.dispose())
    const server = await start([], { ...shim.env })
    const [a, b] = [open(server), open(server)]
    await take(a, request('jump', { ttl: 10_000 }))
    shim.jump(3_600_000)
    await sleep(1500)
    expect((await b.claim(request('jump'), TIMEOUT_MS)).kind).toBe('busy')
    shim.jump(-7_200_000)
    await sleep(1500)
    expect((await b.claim(request('jump'), TIMEOUT_MS)).kind).toBe('busy')
    expect((await b.claim(request('free'), TIMEOUT_MS)).kind).toBe('held')
  })
})
