import fc from 'fast-check'
import { expect, it } from 'vitest'

import { call, look, raw, serve } from './helpers.ts'

const names = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 600 }),
  fc.string({ maxLength: 60 }),
  fc.constantFrom(
    '__proto__',
    'constructor',
    '../../x',
    '{}',
    '*',
    '\r\n',
    '\0',
    'a\u0000b',
    '\ud800',
    '%00',
    "'; --",
  ),
)
const anything = fc.oneof(
  fc.jsonValue(),
  names,
  fc.constantFrom(0, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, '10', null, [], {}),
)

it('grants a lock under exactly the name that was asked for, or refuses the name', async () => {
  const server = await serve()
  await fc.assert(
    fc.asyncProperty(names, async (name) => {
      const { status, body } = await call(server, 'POST /v1/acquire', { body: { name, ttl: 5000 } })
      expect([200, 400]).toContain(status)
      expect(status === 200 ? 'granted' : body.error.code).toBe(
        status === 200 ? 'granted' : 'INVALID_ARGUMENT',
      )
      if (status !== 200) return
      const { lease } = body as unknown as { lease: string }
      expect(await look(server, name)).toMatchObject({ name, holders: [{}] })
      const list = await call(server, `GET /v1/locks?prefix=${encodeURIComponent(name)}`)
      expect(list.body).toEqual({ names: [name] })
      expect((await call(server, 'POST /v1/release', { body: { name, lease } })).status).toBe(200)
    }),
    { numRuns: 150 },
  )
})

it('answers any body with success or a refusal, never with a failure of its own, and leaves nothing behind', async () => {
  const server = await serve()
  const fields = fc.record(
    {
      name: anything,
      lease: anything,
      ttl: anything,
      wait: fc.constantFrom(0, 1, '0', null),
      mode: anything,
      permits: anything,
      of: anything,
      owner: anything,
      reason: anything,
      token: anything,
      leases: anything,
    },
    { requiredKeys: [] },
  )
  const bodies = fc.oneof(
    fields,
    anything,
    fc.string().map((text) => text || '{'),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('acquire', 'renew', 'release', 'force-release'),
      bodies,
      async (route, body) => {
        const { status, text } = await call(server, `POST /v1/${route}`, { body })
        expect([200, 400, 404, 409], `${text}`).toContain(status)
        if (status !== 200) return
        const { name, lease } = JSON.parse(text) as { name: string; lease?: string }
        if (lease !== undefined) await call(server, 'POST /v1/release', { body: { name, lease } })
      },
    ),
    { numRuns: 300 },
  )
  expect((await call(server, 'GET /v1/locks')).body).toEqual({ names: [] })
})

it('answers any line of a session, or ends it, and serves the others', async () => {
  const server = await serve()
  const upgrade = `GET /v1/session HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\nholdfast-request: 1\r\n\r\n`
  const operation = fc.constantFrom(
    'claim',
    'renew',
    'release',
    'withdraw',
    'watch',
    'unwatch',
    'inspect',
    'list',
    'ping',
    '__proto__',
  )
  const claim = fc.record(
    {
      name: anything,
      id: anything,
      weight: anything,
      capacity: anything,
      ttl: anything,
      patience: anything,
      tokens: anything,
      whenBusy: anything,
      owner: anything,
      next: anything,
    },
    { requiredKeys: [] },
  )
  const payload = fc.oneof(anything, claim, fc.array(claim, { maxLength: 3 }))
  await fc.assert(
    fc.asyncProperty(operation, payload, anything, async (what, body, timeout) => {
      const said = await raw(server, `${upgrade}${JSON.stringify([7, what, body, timeout])}\n`, '\n[7,')
      expect(said).toContain('\n[7,')
    }),
    { numRuns: 150 },
  )
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 200 }), async (text) => {
      await raw(server, `${upgrade}${text}\n[1,"ping",null,1]\nx\n`)
    }),
    { numRuns: 50 },
  )
  expect((await call(server, 'GET /v1/health')).body).toEqual({ status: 'ready', store: 'memory' })
})
