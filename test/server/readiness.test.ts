import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import type { Store } from '../../src/core/contract.ts'
import type { LogEntry } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { call, eventually, serve, temporaryFolder } from './helpers.ts'

/** A store that can be dead. */
function mortal(): { store: Store; dead: { now: boolean } } {
  const alive = memoryStore()
  const dead = { now: false }
  const unknown = { kind: 'unknown', cause: new Error('ECONNREFUSED db.internal') } as const
  const store: Store = {
    ...alive,
    kind: alive.kind,
    capabilities: alive.capabilities,
    claim: async (...given) => (dead.now ? unknown : alive.claim(...given)),
    renew: async (...given) => (dead.now ? given[0].map(() => unknown) : alive.renew(...given)),
    release: async (...given) => (dead.now ? { released: unknown } : alive.release(...given)),
    withdraw: async (...given) => (dead.now ? unknown : alive.withdraw(...given)),
    watch: async (...given) => (dead.now ? unknown : alive.watch(...given)),
    inspect: async (...given) => (dead.now ? unknown : alive.inspect(...given)),
    list: async (...given) => (dead.now ? unknown : alive.list(...given)),
    close: () => alive.close(),
  }
  return { store, dead }
}

it('is not ready while the store behind it does not answer, says so once, and is ready again afterwards', async () => {
  const { store, dead } = mortal()
  const log: LogEntry[] = []
  const server = await serve({ store, log: (entry) => void log.push(entry) })
  expect((await call(server, 'GET /v1/ready')).status).toBe(200)
  dead.now = true
  await eventually('it is not ready', async () => (await call(server, 'GET /v1/ready')).status === 503)
  const { body, text } = await call(server, 'GET /v1/ready')
  expect(body.error.code).toBe('STORE_UNAVAILABLE')
  expect(text).not.toContain('db.internal')
  expect((await call(server, 'GET /v1/metrics')).text).toMatch(/holdfast_ready\{[^}]*\} 0/)
  dead.now = false
  await eventually('it is ready', async () => (await call(server, 'GET /v1/ready')).status === 200)
  expect(log.map(({ level }) => level)).toEqual(['error', 'info'])
  expect(log[0]?.message).toContain('db.internal')
})

it('is not ready while the store can be read and not be written, once a claim was refused', async () => {
  const { store: alive, dead } = mortal()
  const store: Store = { ...alive, inspect: memoryStore().inspect.bind(memoryStore()) }
  const log: LogEntry[] = []
  const server = await serve({ store, log: (entry) => void log.push(entry) })
  dead.now = true
  expect((await call(server, 'GET /v1/ready')).status).toBe(200)
  const take = async (): Promise<number> =>
    (await call(server, 'POST /v1/acquire', { body: { name: 'a', ttl: 200 } })).status
  expect(await take()).toBe(503)
  await eventually('it is not ready', async () => (await call(server, 'GET /v1/ready')).status === 503)
  expect(log.map(({ level }) => level)).toEqual(['error'])
  expect(log[0]?.message).toContain('db.internal')
  dead.now = false
  await eventually('it is ready', async () => (await call(server, 'GET /v1/ready')).status === 200)
  expect(await take()).toBe(200)
  expect(log.map(({ level }) => level)).toEqual(['error', 'info'])
  await eventually('nothing is left', async () => {
    const page = await alive.list({}, 1000)
    return 'names' in page && !page.names.includes('holdfast-ready')
  })
})

it('says that its store refuses claims also where nobody asks whether it is ready', async () => {
  const { store, dead } = mortal()
  const log: LogEntry[] = []
  const server = await serve({ store, log: (entry) => void log.push(entry) })
  dead.now = true
  await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  await eventually('it is logged', () => log.length > 0)
  expect(log[0]).toMatchObject({ level: 'error', event: 'need', what: 'store' })
})

it('is not ready while its state file cannot be written, though nobody asks for a lock', async () => {
  const folder = join(temporaryFolder(), 'state')
  const server = await serve({ state: join(folder, 'state.json') })
  expect((await call(server, 'GET /v1/ready')).status).toBe(200)
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'not a folder any more')
  await eventually('it is not ready', async () => (await call(server, 'GET /v1/ready')).status === 503)
  expect((await call(server, 'GET /v1/ready')).body.error.message).toContain('state file')
  rmSync(folder)
  mkdirSync(folder)
  await eventually('it is ready', async () => (await call(server, 'GET /v1/ready')).status === 200)
})

it('stops within its grace although the store is dead and somebody has gone away who waited', async () => {
  const { store, dead } = mortal()
  const server = await serve({ store })
  await call(server, 'POST /v1/acquire', { body: { name: 'a', ttl: 60_000 } })
  const gone = new AbortController()
  const waiting = call(server, 'POST /v1/acquire', {
    body: { name: 'a', ttl: 3_600_000, wait: 60_000 },
    signal: gone.signal,
  })
  waiting.catch(() => undefined)
  await eventually('it waits', async () => {
    const { text } = await call(server, 'GET /v1/metrics')
    return /holdfast_waiting\{[^}]*\} 1/.test(text)
  })
  dead.now = true
  gone.abort()
  await eventually('it has left', async () => {
    const { text } = await call(server, 'GET /v1/metrics')
    return /holdfast_waiting\{[^}]*\} 0/.test(text)
  })
  const began = performance.now()
  await server.close({ grace: 300 })
  expect(performance.now() - began).toBeLessThan(2500)
})
