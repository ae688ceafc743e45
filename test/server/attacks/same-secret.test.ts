import { writeFileSync } from 'node:fs'

import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { hashToken } from '../../../src/server/index.ts'
import type { RunningServer } from '../../../src/server/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { call, eventually, look, serve, take, temporaryFolder } from '../helpers.ts'
import type { Answer } from '../helpers.ts'

/** Several requests with one secret that the client made: what it is told is what it has. */

const secret = (letter: string): string => `${letter.repeat(30)}.${letter.repeat(30)}`

const acquire = (
  server: RunningServer,
  body: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<Answer> =>
  call(server, 'POST /v1/acquire', { body: { name: 'a', ttl: 60_000, ...body }, ...(signal && { signal }) })

const hungUp = (server: RunningServer): Promise<void> =>
  eventually('the server knows that its client is gone', async () =>
    (await call(server, 'GET /v1/metrics')).text.includes('status="499"'),
  )

/** Claims reach the store, or their answers come back from it, when they are let through. */
function gated(inner: Store, when: 'before' | 'after'): { store: Store; claims: (() => void)[] } {
  const claims: (() => void)[] = []
  const store = new Proxy(inner, {
    get: (target, key) => {
      const value = Reflect.get(target, key) as unknown
      if (typeof value !== 'function' || key !== 'claim') return value
      return async (...given: unknown[]) => {
        const through = new Promise<void>((resolve) => void claims.push(resolve))
        if (when === 'before') await through
        const answer = Reflect.apply(value, target, given) as unknown
        if (when === 'after') await through
        return answer
      }
    },
  })
  return { store, claims }
}

it.each(['before', 'after'] as const)(
  'keeps what was granted to a second request when the first is given up, held up %s the store',
  async (when) => {
    const { store, claims } = gated(memoryStore(), when)
    const server = await serve({ store })
    const client = new AbortController()
    const first = acquire(server, { lease: secret('a') }, client.signal).catch(() => 'gone')
    await eventually('the first is under way', () => claims.length === 1)
    const second = acquire(server, { lease: secret('a') })
    await eventually('the second is under way', () => claims.length === 2)
    claims[1]?.()
    expect((await second).status).toBe(200)
    client.abort()
    expect(await first).toBe('gone')
    await hungUp(server)
    claims[0]?.()
    await new Promise((resolve) => void setTimeout(resolve, 100))
    expect((await look(server, 'a')).holders).toHaveLength(1)
    expect((await call(server, 'POST /v1/renew', { body: { name: 'a', lease: secret('a') } })).status).toBe(
      200,
    )
  },
)

it('keeps what was granted at another server of the store when the first hears late that its client has left', async () => {
  const inner = memoryStore()
  const { store, claims } = gated(inner, 'before')
  const slow = await serve({ store })
  const other = await serve({ store: inner })
  const client = new AbortController()
  const first = acquire(slow, { lease: secret('a') }, client.signal).catch(() => 'gone')
  await eventually('it is under way', () => claims.length === 1)
  client.abort()
  await first
  await hungUp(slow)
  expect((await acquire(other, { lease: secret('a') })).status).toBe(200)
  claims[0]?.()
  await new Promise((resolve) => void setTimeout(resolve, 300))
  expect((await look(other, 'a')).holders).toHaveLength(1)
})

it('grants a free lock to who gave up and asks again with the same secret', async () => {
  const { store, claims } = gated(memoryStore(), 'before')
  const server = await serve({ store })
  const client = new AbortController()
  const first = acquire(server, { lease: secret('a') }, client.signal).catch(() => 'gone')
  await eventually('it is under way', () => claims.length === 1)
  client.abort()
  await first
  await hungUp(server)
  claims[0]?.()
  const again = acquire(server, { lease: secret('a') })
  await eventually('it is under way again', () => claims.length === 2)
  claims[1]?.()
  expect((await again).status).toBe(200)
})

it('ends a request whose secret is released while it waits, and does not stand in line for it again', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  const waiting = acquire(server, { lease: secret('w'), wait: 20_000 })
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const release = (own: string): Promise<Answer> =>
    call(server, 'POST /v1/release', { body: { name: 'a', lease: own } })
  const began = performance.now()
  expect((await release(secret('w'))).status).toBe(200)
  expect((await waiting).body.error.code).toBe('LOCK_TIMEOUT')
  expect(performance.now() - began).toBeLessThan(10_000)
  expect((await look(server, 'a')).waiters).toEqual([])
  await release(lease)
  expect((await look(server, 'a')).holders).toEqual([])
})

it('takes back what is granted to a request whose secret was released while the store was asked', async () => {
  const { store, claims } = gated(memoryStore(), 'before')
  const server = await serve({ store })
  const trying = acquire(server, { lease: secret('w') })
  await eventually('it is under way', () => claims.length === 1)
  await call(server, 'POST /v1/release', { body: { name: 'a', lease: secret('w') } })
  expect((await trying).body.error.code).toBe('LOCK_TIMEOUT')
  claims[0]?.()
  await new Promise((resolve) => void setTimeout(resolve, 100))
  expect((await look(server, 'a')).holders).toEqual([])
})

const ASKED = {
  'a reader for a writer': [{ mode: 'shared' }, { mode: 'write' }],
  'one permit for three': [
    { mode: 'permits', of: 3 },
    { mode: 'permits', permits: 3, of: 3 },
  ],
  'a permit for all of it': [{ mode: 'permits', of: 3 }, { mode: 'exclusive' }],
} as const

it.each(Object.keys(ASKED) as (keyof typeof ASKED)[])(
  'does not take %s because of its secret',
  async (kind) => {
    const [first, second] = ASKED[kind]
    const state = `${temporaryFolder()}/state.json`
    const server = await serve({ state })
    const lease = secret('a')
    expect((await acquire(server, { ...first, lease })).status).toBe(200)
    expect((await acquire(server, { ...second, lease })).body.error.code).toBe('ID_IN_USE')
    // Asked for once more it is the same, at the next run, too.
    expect((await acquire(server, { ...first, lease })).status).toBe(200)
    await server.close()
    const next = await serve({ state })
    expect((await acquire(next, { ...second, lease })).body.error.code).toBe('ID_IN_USE')
    expect((await acquire(next, { ...first, lease })).status).toBe(200)
  },
)

it('does not take a reader for a writer while the store has not answered', async () => {
  const { store, claims } = gated(memoryStore(), 'before')
  const server = await serve({ store })
  const reading = acquire(server, { mode: 'shared', lease: secret('a') })
  await eventually('it is under way', () => claims.length === 1)
  expect((await acquire(server, { mode: 'write', lease: secret('a') })).body.error.code).toBe('ID_IN_USE')
  claims[0]?.()
  expect((await reading).status).toBe(200)
})

async function twoInLine(
  server: RunningServer,
): Promise<{ lease: string; first: Promise<Answer>; behind: Promise<Answer> }> {
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  const first = acquire(server, { lease: secret('a'), wait: 20_000 })
  await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
  const behind = acquire(server, { wait: 20_000 })
  await eventually('so does another', async () => (await look(server, 'a')).waiters.length === 2)
  return { lease, first, behind }
}

it('gives the place of a request that waits to a later one with its secret', async () => {
  const server = await serve()
  const { lease, first, behind } = await twoInLine(server)
  const second = acquire(server, { lease: secret('a'), wait: 20_000 })
  expect((await first).body.error.code).toBe('LOCK_TIMEOUT')
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  // Still before the other.
  expect(await second).toMatchObject({ status: 200, body: { lease: secret('a') } })
  await call(server, 'POST /v1/release', { body: { name: 'a', lease: secret('a') } })
  expect((await behind).status).toBe(200)
})

it('gives the place of a request that waits up for a later one with its secret that does not wait', async () => {
  const server = await serve()
  const { lease, first, behind } = await twoInLine(server)
  expect((await acquire(server, { lease: secret('a') })).body.error.code).toBe('LOCK_BUSY')
  expect((await first).body.error.code).toBe('LOCK_TIMEOUT')
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await behind).status).toBe(200)
})

it('does not give the place of a request that waits to a stranger who knows its secret', async () => {
  const path = `${temporaryFolder()}/tokens`
  const tokens = ['mallory', 'victim'].map((who) => `${who}-0123456789-0123456789`)
  writeFileSync(
    path,
    tokens.map((token) => `${token.slice(0, 6)} ${hashToken(token)} acquire,read *\n`).join(''),
    {
      mode: 0o600,
    },
  )
  const server = await serve({ tokensFile: path })
  const as = (token: string | undefined, body: object): Promise<Answer> =>
    call(server, 'POST /v1/acquire', {
      body: { name: 'a', ttl: 60_000, ...body },
      headers: { authorization: `Bearer ${token}` },
    })
  await as(tokens[1], {})
  const waiting = as(tokens[1], { lease: secret('v'), wait: 500 })
  await new Promise((resolve) => void setTimeout(resolve, 200))
  expect((await as(tokens[0], { lease: secret('v'), wait: 0 })).body.error.code).toBe('FORBIDDEN')
  expect((await waiting).body.error.message).toMatch(/did not become free/)
})
