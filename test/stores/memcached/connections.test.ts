import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

import { afterEach, describe, expect, it } from 'vitest'

import { available } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { memcached } from '../../../scripts/services/memcached.mjs'
import type { Store } from '../../../src/core/contract.ts'
import { FaultProxy } from '../../../src/testkit/fault-proxy.ts'
import { afterwards, builds, open, request, sleep, take, TIMEOUT_MS, undoAll, until } from './kit.ts'

afterEach(undoAll)

describe.skipIf(!available('memcached')).each(builds)('connections to $label', ({ command: path }) => {
  async function start(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Server> {
    const server = await memcached({ args, env, ...(path === undefined ? {} : { command: path }) })
    afterwards(() => server.stop())
    return server
  }

  async function proxied(): Promise<{ server: Server; proxy: FaultProxy; store: Store; other: Store }> {
    const server = await start()
    const proxy = await FaultProxy.open(server)
    afterwards(() => proxy.close())
    return { server, proxy, store: open(proxy), other: open(server) }
  }

  it('a reply that is cut off is unknown for every request, and asking again finds the state that it made', async () => {
    const { proxy, store, other } = await proxied()
    const held = request('cut')
    const cutting = async <T>(match: string, ask: () => Promise<T> | T): Promise<T> => {
      const cut = proxy.cutReply({ match: (chunk) => chunk.includes(match) })
      const answer = await ask()
      await cut
      return answer
    }
    await take(store, request('warm'))
    expect(await cutting('l:cut', () => store.claim(held, TIMEOUT_MS))).toMatchObject({ kind: 'unknown' })
    expect((await other.claim(request('cut'), TIMEOUT_MS)).kind).toBe('busy')
    const first = await take(store, held)
    expect((await take(store, held)).token).toBe(first.token)

    const renewal = { ...held, ttl: 60_000, tokens: 0 }
    expect(await cutting('l:cut', () => store.renew([renewal], TIMEOUT_MS))).toMatchObject([
      { kind: 'unknown' },
    ])
    expect(await store.renew([renewal], TIMEOUT_MS)).toMatchObject([{ kind: 'renewed' }])

    expect(await cutting('l:cut', () => store.inspect('cut', TIMEOUT_MS))).toMatchObject({ kind: 'unknown' })
    expect(await store.inspect('cut', TIMEOUT_MS)).toMatchObject({
      holders: [{ id: held.id, token: first.token }],
    })

    await take(store, request('warm-again'))
    const released = await cutting('l:cut', () => store.release(held, undefined, TIMEOUT_MS))
    expect(released.released.kind).toBe('unknown')
    expect((await store.withdraw(held, TIMEOUT_MS)).kind).not.toBe('unknown')

    const next = request('cut')
    await take(store, next)
    expect(await cutting('l:cut', () => store.withdraw(next, TIMEOUT_MS))).toMatchObject({ kind: 'unknown' })
    expect((await store.withdraw(next, TIMEOUT_MS)).kind).toBe('released')
    expect((await other.claim(request('cut'), TIMEOUT_MS)).kind).toBe('held')
  })

  it('a slow server is unknown when the time is up, and its late replies are not taken for others', async () => {
    const { proxy, store } = await proxied()
    await take(store, request('warm'))
    proxy.set('replies', { latency: 300 })
    const slow = request('slow')
    const began = performance.now()
    const [first, second] = await Promise.all([store.claim(request('soon'), 5000), store.claim(slow, 150)])
    expect([first.kind, second.kind]).toEqual(['held', 'unknown'])
    expect(performance.now() - began).toBeLessThan(5000)
    expect(proxy.accepted).toBe(1)
    const answers = await Promise.all([store.claim(request('b'), 2000), store.claim(slow, 2000)])
    expect(answers.map(({ kind }) => kind)).toEqual(['held', 'held'])
  })

  it('replies in the smallest pieces are read all the same', async () => {
    const { proxy, store } = await proxied()
    proxy.set('replies', { slice: 1 })
    const held = request('pieces')
    await take(store, held)
    expect(await store.renew([held], TIMEOUT_MS)).toMatchObject([{ kind: 'held' }])
    expect((await store.release(held, undefined, TIMEOUT_MS)).released.kind).toBe('released')
  })

  it('a connection that swallows everything is given up, and the next request has a new one', async () => {
    const { proxy, store } = await proxied()
    await take(store, request('warm'))
    proxy.set('requests', { blackhole: true })
    const began = performance.now()
    expect((await store.claim(request('lost'), 200)).kind).toBe('unknown')
    expect(performance.now() - began).toBeLessThan(5000)
    proxy.heal()
    const found = request('found')
    await until(
      'granted',
      async () => ((await store.claim(found, 200)).kind === 'held' ? true : undefined),
      3000,
    )
    expect(proxy.accepted).toBe(2)
  })

  it('a dial that is swallowed is begun anew, however many callers come and go meanwhile', async () => {
    const { proxy, store } = await proxied()
    proxy.set('requests', { blackhole: true })
    const first = store.claim(request('swallowed'), 1500)
    await until('swallowed', async () => (proxy.swallowed > 0 ? true : undefined))
    // What was swallowed is never answered; a new connection would be.
    proxy.heal()
    const others = Array.from({ length: 12 }, async (_, index) => {
      await sleep(index * 500)
      return (await store.claim(request(`swallowed-${index}`), 1500)).kind
    })
    expect((await first).kind).toBe('unknown')
    expect((await Promise.all(others)).slice(6)).toEqual(Array.from({ length: 6 }, () => 'held'))
    expect(proxy.accepted).toBe(2)
  }, 20_000)

  it('a server without a connection left says so, and is asked again', async () => {
    const server = await start()
    let full = true
    const middle = createServer((client) => {
      if (full) return void client.end('ERROR Too many open connections\r\n')
      const upstream = connect(server.port, server.host)
      for (const socket of [client, upstream]) socket.on('error', () => undefined)
      client.on('close', () => upstream.destroy())
      client.pipe(upstream).pipe(client)
    })
    await new Promise<void>((resolve) => void middle.listen(0, '127.0.0.1', resolve))
    afterwards(() => middle.close())
    const store = open({ host: '127.0.0.1', port: (middle.address() as AddressInfo).port })
    const answer = await store.claim(request('full'), TIMEOUT_MS)
    expect(answer.kind === 'unknown' && [String(answer.cause), answer.retryable]).toEqual([
      'Error: memcached has no connection left (ERROR Too many open connections). Raise -c.',
      undefined,
    ])
    full = false
    await take(store, request('full'))
  })

  it.each([
    ['noise', '\0\x01garbage\r\n'],
    ['another protocol', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['a reply too many', 'HD\r\n'],
    ['an endless line', 'x'.repeat(10_000)],
    ['a value too large', 'VA 99999999 c1\r\n'],
  ])(
    '%s among the replies ends the connection, and nothing that came with it is believed',
    async (_what, noise) => {
      const server = await start()
      let corrupt = ''
      const middle = createServer((client) => {
        const upstream = connect(server.port, server.host)
        for (const socket of [client, upstream]) socket.on('error', () => undefined)
        client.on('close', () => upstream.destroy())
        client.pipe(upstream)
        upstream.on('data', (chunk) => {
          client.write(corrupt, 'latin1')
          corrupt = ''
          client.write(chunk)
        })
      })
      await new Promise<void>((resolve) => void middle.listen(0, '127.0.0.1', resolve))
      afterwards(() => middle.close())
      const store = open({ host: '127.0.0.1', port: (middle.address() as AddressInfo).port })
      await take(store, request('warm'))
      const held = request('noise')
      corrupt = noise
      expect((await store.claim(held, TIMEOUT_MS)).kind).toBe('unknown')
      // The next connection is as good as any.
      await take(store, held)
      expect((await store.release(held, undefined, TIMEOUT_MS)).released.kind).toBe('released')
    },
  )
})
