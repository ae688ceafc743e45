import { spawnSync } from 'node:child_process'
import { networkInterfaces } from 'node:os'

import { describe, expect, it } from 'vitest'

import { call, look, portOf, raw, serve, take } from './helpers.ts'

/** What other people's clients do. */

const H2C =
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'

describe('an offer of HTTP/2', () => {
  it('is ignored, and the request answered', async () => {
    const server = await serve()
    const got = await raw(server, `GET /v1/health HTTP/1.1\r\nHost: localhost\r\n${H2C}\r\n`, '"ready"')
    expect(got).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('is ignored with a body, whole or in pieces, and another request behind it', async () => {
    const server = await serve()
    const body = '{"name":"offered"}'
    const head = `POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n${H2C}Content-Type: application/json\r\nHoldfast-Request: 1\r\nContent-Length: ${body.length}\r\n\r\n`
    const next = 'GET /v1/locks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    const got = await raw(server, head + body + next)
    expect(got.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
    expect(got).toContain('{"names":["offered"]}')
    expect((await look(server, 'offered')).holders).toHaveLength(1)
  })

  it('gets nobody past the gate', async () => {
    const server = await serve()
    const got = await raw(server, `GET /v1/locks HTTP/1.1\r\nHost: evil.example\r\n${H2C}\r\n`, '\r\n\r\n')
    expect(got).toMatch(/^HTTP\/1\.1 421 /)
  })

  it.skipIf(spawnSync('curl', ['--version']).status !== 0)('of curl is ignored', async () => {
    const server = await serve()
    const { spawn } = await import('node:child_process')
    const curl = spawn('curl', ['-s', '--http2', `http://127.0.0.1:${portOf(server)}/v1/health`])
    let said = ''
    curl.stdout.on('data', (bytes) => (said += String(bytes)))
    await new Promise((resolve) => void curl.on('close', resolve))
    expect(said).toContain('"ready"')
  })
})

it.each(['/v1/health', '/v1/ready', '/v1/locks', '/v1/openapi.json'])(
  'answers HEAD %s without a body',
  async (path) => {
    const server = await serve()
    const { status, text, headers } = await call(server, `HEAD ${path}`)
    expect([status, text]).toEqual([200, ''])
    expect(Number(headers['content-length'])).toBeGreaterThan(0)
  },
)

it('does not keep a HEAD of what has no end', async () => {
  const server = await serve()
  expect((await call(server, 'HEAD /v1/events')).status).toBe(405)
})

it('asks proxies not to keep events back', async () => {
  const server = await serve()
  const got = await raw(server, 'GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n', ': watching')
  expect(got).toContain('x-accel-buffering: no\r\n')
})

describe('a page of an allowed origin', () => {
  const origin = 'https://dash.example'

  it('is told that it may send and read', async () => {
    const server = await serve({ origins: [origin] })
    const { status, headers } = await call(server, 'OPTIONS /v1/acquire', {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,holdfast-request',
      },
    })
    expect(status).toBe(204)
    expect(headers['access-control-allow-origin']).toBe(origin)
    expect(headers['access-control-allow-headers']).toContain('holdfast-request')
    const { headers: read } = await call(server, 'POST /v1/acquire', {
      body: { name: 'a' },
      headers: { origin },
    })
    expect([read['access-control-allow-origin'], read['vary']]).toEqual([origin, 'Origin'])
    const refused = await call(server, 'POST /v1/acquire', { body: { name: 'a' }, headers: { origin } })
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([409, origin])
  })

  it('is told nothing of the kind otherwise', async () => {
    const server = await serve({ origins: [origin] })
    const { status, headers } = await call(server, 'OPTIONS /v1/acquire', {
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    })
    expect(status).toBe(403)
    expect(headers['access-control-allow-origin']).toBeUndefined()
    expect((await call(server, 'GET /v1/health')).headers['access-control-allow-origin']).toBeUndefined()
  })
})

const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

it.skipIf(address === undefined)(
  'answers at the address by which it is reached, and to no other name',
  async () => {
    const server = await serve({ listen: '0.0.0.0:0', insecure: true })
    const at = `http://${address ?? ''}:${portOf(server)}`
    expect((await fetch(`${at}/v1/ready`)).status).toBe(200)
    const foreign = await call(server, 'GET /v1/ready', { headers: { host: `${address ?? ''}.nip.example` } })
    expect(foreign.status).toBe(421)
    expect((await call(server, 'GET /v1/ready', { headers: { host: '10.9.8.7:1' } })).status).toBe(421)
  },
)

it('gives a lock back to who is over the limit of requests', async () => {
  const server = await serve({ limits: { requestsPerSecond: 5 } })
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  // At once, for on a slow machine a few of them after each other are within any limit.
  const looks = Array.from({ length: 60 }, () => call(server, 'GET /v1/locks'))
  const back = call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  const statuses = (await Promise.all(looks)).map(({ status }) => status)
  expect(statuses).toContain(429)
  expect((await back).status).toBe(200)
})
