import { randomBytes } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import type { Store } from '../../src/core/contract.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { call, eventually, look, portOf, raw, serve, take } from './helpers.ts'

describe('bytes that are no UTF-8', () => {
  it('are refused in a body, and do not become the same name as others', async () => {
    const server = await serve()
    const send = (byte: number): Promise<string> => {
      const body = Buffer.concat([Buffer.from('{"name":"a'), Buffer.from([byte]), Buffer.from('"}')])
      const head = `POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nHoldfast-Request: 1\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
      return raw(server, Buffer.concat([Buffer.from(head), body]) as unknown as string)
    }
    for (const byte of [0x80, 0xff, 0xc0]) expect(await send(byte)).toMatch(/^HTTP\/1\.1 400 /)
    expect((await call(server, 'GET /v1/locks')).body).toEqual({ names: [] })
  })
})

describe('a lease of the client’s own making', () => {
  const made = (): string =>
    `${randomBytes(16).toString('base64url')}.${randomBytes(16).toString('base64url')}`

  it('is granted under that secret, again if it is asked again, and can be given back unheard', async () => {
    const server = await serve()
    const lease = made()
    expect((await take(server, { name: 'a', lease })).lease).toBe(lease)
    expect((await take(server, { name: 'a', lease })).lease).toBe(lease)
    expect((await call(server, 'POST /v1/release', { body: { name: 'a', lease } })).status).toBe(200)
    expect((await look(server, 'a')).holders).toEqual([])
  })

  it.each(['short.short', 'x'.repeat(60), `${'x'.repeat(22)}.`, 7, ''])(
    'must be hard to guess: not %j',
    async (lease) => {
      const server = await serve()
      const { status } = await call(server, 'POST /v1/acquire', { body: { name: 'a', lease } })
      expect(status).toBe(400)
    },
  )

  it('waits in one request at a time: the later one takes the place of the earlier', async () => {
    const server = await serve()
    await take(server, { name: 'a' })
    const body = { name: 'a', lease: made(), wait: 5000 }
    const earlier = call(server, 'POST /v1/acquire', { body })
    await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
    const later = call(server, 'POST /v1/acquire', { body })
    const { status } = await earlier
    expect((await look(server, 'a')).waiters).toHaveLength(1)
    await server.close()
    expect([status, (await later).status]).toEqual([409, 503])
  })
})

it('counts a wait that was hung up as what it is', async () => {
  const server = await serve()
  await take(server, { name: 'a' })
  const gone = new AbortController()
  const waiting = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 5000 }, signal: gone.signal })
  await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
  gone.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await eventually('it is counted', async () =>
    /holdfast_http_requests_total\{[^}]*status="499"[^}]*\} 1/.test(
      (await call(server, 'GET /v1/metrics')).text,
    ),
  )
})

it('says in words that a certificate is none', async () => {
  await expect(serve({ tls: { cert: 'no', key: 'no' } })).rejects.toThrow('PEM files that belong together')
})

it('has one request of a connection in service at a time, in order, and answers all', async () => {
  const server = await serve()
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const last = 'GET /v1/locks/z HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
  const got = await raw(server, Array.from({ length: 20 }, (_, n) => get(`/v1/locks/${n}`)).join('') + last)
  const names = [...got.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name)
  expect(names).toEqual([...Array.from({ length: 20 }, (_, n) => String(n)), 'z'])
  expect(portOf(server)).toBeGreaterThan(0)
})

it.each([
  '/v1/events?prefx=mine/',
  '/v1/events?prefix=a/&prefix=b/',
  '/v1/locks?prefix=a/&prefix=b/',
  '/v1/locks?limit=1&limit=2',
])('refuses a parameter that it does not know, or that stands there twice: %s', async (path) => {
  const server = await serve({ state: null })
  const { status, body } = await call(server, `GET ${path}`)
  expect([status, body.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
})

it('lists nothing under a prefix with a NUL, about which some stores cannot be asked', async () => {
  const store: Store = Object.assign(Object.create(memoryStore()) as Store, {
    list: () => ({ kind: 'unknown', cause: new Error('invalid byte sequence') }),
  })
  const server = await serve({ store })
  expect(await call(server, 'GET /v1/locks?prefix=a%00')).toMatchObject({ status: 200, body: { names: [] } })
})
