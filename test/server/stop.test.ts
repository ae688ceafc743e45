import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { Holdfast } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import {
  afterwards,
  call,
  eventually,
  listen,
  look,
  portOf,
  serve,
  take,
  temporaryFolder,
} from './helpers.ts'

it('sends waiters away with a time to come back, and leaves leases alone', async () => {
  const store = memoryStore()
  const server = await serve({ store })
  await take(server, { name: 'a', owner: 'holder' })
  const waiting = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 30_000 } })
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const events = await listen(server, '/v1/events')
  const began = performance.now()
  await server.close({ grace: 20_000 })
  const { status, headers, body } = await waiting
  expect([status, headers['retry-after'], body.error.code]).toEqual([503, '1', 'STOPPING'])
  await eventually('the events end in order', () => events.ended)
  // Nobody was waited for.
  expect(performance.now() - began).toBeLessThan(10_000)
  // Another server of the same store goes on from there.
  const other = await serve({ store })
  expect(await look(other, 'a')).toMatchObject({ holders: [{ owner: 'holder' }], waiters: [] })
})

it('lets holders of a shared store go on with the next server at the same address', async () => {
  const store = memoryStore()
  const first = await serve({ store })
  const remote = holdfastStore(first.url)
  const holdfast = new Holdfast(remote, { ttl: 1500 })
  afterwards(async () => {
    await holdfast.close()
    await remote.close()
  })
  const lease = await holdfast.mutex('a').acquire()
  await first.close()
  await serve({ store, listen: first.address })
  // Longer than one ttl: it was renewed at the second server.
  await new Promise((resolve) => void setTimeout(resolve, 2000))
  lease.assertHeld()
  expect(await lease.release()).toBe('released')
})

it('refuses new locks while it stops, and is not ready', async () => {
  const server = await serve()
  const held = listen(server, '/v1/events')
  await held
  const closing = server.close()
  await expect(call(server, 'GET /v1/ready')).rejects.toThrow(/ECONNREFUSED|ECONNRESET|hang up/)
  await closing
})

// Elsewhere a machine has one loopback address only.
it.runIf(process.platform === 'linux')(
  'ends although one port of a client leads to two of its addresses, with half a request on each',
  async () => {
    const server = await serve({ listen: '0.0.0.0:0', insecure: true })
    const from = { localAddress: '127.0.0.1', port: portOf(server) }
    const dial = (host: string, localPort?: number): Promise<Socket> =>
      new Promise((resolve, reject) => {
        const socket = connect({ ...from, host, ...(localPort === undefined ? {} : { localPort }) }, () => {
          socket.write('GET /v1/health HTTP/1.1\r\nhost: localhost\r\n')
          resolve(socket)
        })
        afterwards(() => socket.destroy())
        socket.on('error', reject)
      })
    const first = await dial('127.0.0.1')
    await dial('127.0.0.2', first.localPort)
    await eventually('both are there', async () => {
      const { text } = await call(server, 'GET /v1/metrics')
      return /^holdfast_connections\{.*\} 3$/m.test(text)
    })
    await expect(server.close({ grace: 50 })).resolves.toBeUndefined()
  },
)

it('leaves only what is still leased to wait for, and nothing if nothing is', async () => {
  const path = join(temporaryFolder(), 'state.json')
  const state = (): { span: number } => JSON.parse(readFileSync(path, 'utf8')) as { span: number }
  const first = await serve({ state: path })
  const { lease } = await take(first, { name: 'a', ttl: 60_000 })
  expect(state().span).toBeGreaterThan(60_000)
  await call(first, 'POST /v1/release', { body: { name: 'a', lease } })
  await first.close()
  expect(state().span).toBe(0)
  const second = await serve({ state: path })
  expect(second.startsIn).toBe(0)
  await take(second, { name: 'a', ttl: 10_000 })
  await second.close()
  // Of what is still held, the next run knows all.
  expect(state().span).toBeGreaterThan(5000)
  const third = await serve({ state: path })
  expect(third.startsIn).toBe(0)
  const { body } = await call(third, 'POST /v1/acquire', { body: { name: 'a' } })
  expect(body.error.code).toBe('LOCK_BUSY')
})
