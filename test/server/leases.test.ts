import { expect, it } from 'vitest'

import { ALL } from '../../src/core/contract.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { call, eventually, listen, look, serve, take } from './helpers.ts'

it('grants a free lock with a secret, a token and the time it lasts', async () => {
  const server = await serve()
  const { status, body } = await call(server, 'POST /v1/acquire', {
    body: { name: 'a', ttl: 5000, owner: 'me' },
  })
  expect(status).toBe(200)
  const { lease, token, ...rest } = body as unknown as Record<string, string>
  expect(lease).toMatch(/^[\w-]{22}\.[\w-]{22}$/)
  expect(token).toMatch(/^\d+$/)
  expect(rest).toMatchObject({ name: 'a', ttl: 5000 })
  expect(Number(rest['waited'])).toBeLessThan(1000)
  expect(await look(server, 'a')).toMatchObject({
    capacity: 1,
    holders: [{ owner: 'me', weight: 1 }],
    waiters: [],
  })
})

it('answers a lock that is taken with a conflict, at once or after the wait', async () => {
  const server = await serve()
  await take(server, { name: 'a' })
  const busy = await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  expect([busy.status, busy.body.error.code]).toEqual([409, 'LOCK_BUSY'])
  const late = await call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 30 } })
  expect([late.status, late.body.error.code]).toEqual([409, 'LOCK_TIMEOUT'])
  expect((await look(server, 'a')).waiters).toEqual([])
})

it('lets a request wait until the lock is released, and gives it a larger token', async () => {
  const server = await serve()
  const first = await take(server, { name: 'a' })
  const waiting = take(server, { name: 'a', wait: 10_000, ttl: 9000 })
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  await call(server, 'POST /v1/release', { body: { name: 'a', lease: first.lease } })
  const second = await waiting
  expect(second.token).toBeGreaterThan(first.token)
  // Told for a short pick-up time, it was renewed for all of its ttl before it was given away.
  const [holder] = (await look(server, 'a')).holders as { expiresIn: number }[]
  expect(holder?.expiresIn).toBeGreaterThan(8000)
})

it('lets a request wait until a holder that says nothing has run out', async () => {
  const server = await serve()
  await take(server, { name: 'a', ttl: 150 })
  const { token } = await take(server, { name: 'a', wait: 10_000 })
  expect(token).toBeGreaterThan(0n)
})

it('serves those who wait in the order in which they came', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a' })
  const order: number[] = []
  const waiting: Promise<void>[] = []
  for (let number = 0; number < 5; number++) {
    const turn = take(server, { name: 'a', wait: 20_000 }).then(async (mine) => {
      order.push(number)
      await call(server, 'POST /v1/release', { body: { name: 'a', lease: mine.lease } })
    })
    waiting.push(turn)
    await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === number + 1)
  }
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await Promise.all(waiting)
  expect(order).toEqual([0, 1, 2, 3, 4])
})

it('takes a client that goes away while it waits out of the queue at once', async () => {
  const server = await serve()
  await take(server, { name: 'a' })
  const client = new AbortController()
  const waiting = call(server, 'POST /v1/acquire', {
    body: { name: 'a', wait: 30_000 },
    signal: client.signal,
  })
  const failed = waiting.catch((error: Error) => error.name)
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  client.abort()
  expect(await failed).toBe('AbortError')
  await eventually('it left', async () => (await look(server, 'a')).waiters.length === 0, 500)
})

it('gives a lock back that was granted to a client that is gone', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a' })
  const client = new AbortController()
  const waiting = call(server, 'POST /v1/acquire', {
    body: { name: 'a', wait: 30_000 },
    signal: client.signal,
  })
  const failed = waiting.catch((error: Error) => error.name)
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  // Both at once: whichever the server sees first, nothing may stay behind.
  const released = call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  client.abort()
  expect(await failed).toBe('AbortError')
  await released
  await eventually('nobody has it', async () => (await look(server, 'a')).holders.length === 0, 1000)
})

it('has readers, writers and permits', async () => {
  const server = await serve()
  await take(server, { name: 'rw', mode: 'shared' })
  await take(server, { name: 'rw', mode: 'shared' })
  const writer = await call(server, 'POST /v1/acquire', { body: { name: 'rw', mode: 'write' } })
  expect(writer.body.error.code).toBe('LOCK_BUSY')
  await take(server, { name: 'gpu', mode: 'permits', permits: 2, of: 3 })
  const wide = await call(server, 'POST /v1/acquire', {
    body: { name: 'gpu', mode: 'permits', permits: 2, of: 3 },
  })
  expect(wide.body.error.code).toBe('LOCK_BUSY')
  await take(server, { name: 'gpu', mode: 'permits', of: 3 })
  const other = await call(server, 'POST /v1/acquire', { body: { name: 'gpu', mode: 'permits', of: 4 } })
  expect([other.status, other.body.error]).toMatchObject([409, { code: 'CAPACITY_MISMATCH', capacity: 3 }])
  const mixed = await call(server, 'POST /v1/acquire', { body: { name: 'rw' } })
  expect(mixed.body.error).toMatchObject({ code: 'CAPACITY_MISMATCH', capacity: ALL })
})

it('renews one lease or many, and says which are lost', async () => {
  const server = await serve()
  const a = await take(server, { name: 'a', ttl: 1000 })
  const b = await take(server, { name: 'b', ttl: 1000 })
  const one = await call(server, 'POST /v1/renew', { body: { name: 'a', lease: a.lease, ttl: 30_000 } })
  expect([one.status, one.body]).toEqual([
    200,
    { name: 'a', outcome: 'renewed', ttl: 30_000, contended: false },
  ])
  const leases = [
    { name: 'a', lease: a.lease },
    { name: 'b', lease: `${b.lease}x` },
    { name: 'b', lease: b.lease, ttl: 2000 },
  ]
  const many = await call(server, 'POST /v1/renew', { body: { leases } })
  expect(many.body).toMatchObject({
    leases: [{ outcome: 'renewed', ttl: 30_000 }, { outcome: 'lost' }, { outcome: 'renewed', ttl: 2000 }],
  })
  const lost = await call(server, 'POST /v1/renew', { body: { name: 'a', lease: 'nobody.knows' } })
  expect([lost.status, lost.body.error.code]).toEqual([409, 'LOCK_LOST'])
})

it('releases only with the secret, and says when there was nothing to release', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a' })
  const stranger = await call(server, 'POST /v1/release', {
    body: { name: 'a', lease: `${lease.slice(0, -1)}_` },
  })
  expect([stranger.status, stranger.body.error.code]).toEqual([409, 'LOCK_LOST'])
  expect((await look(server, 'a')).holders).toHaveLength(1)
  const own = await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect([own.status, own.body]).toEqual([200, { name: 'a', released: true }])
  expect((await look(server, 'a')).holders).toEqual([])
})

it('lists the names in use, by prefix and page by page', async () => {
  const server = await serve()
  for (const name of ['x/1', 'x/2', 'x/3', 'y']) await take(server, { name })
  const first = await call(server, 'GET /v1/locks?prefix=x%2F&limit=2')
  const { names, cursor } = first.body as unknown as { names: string[]; cursor: string }
  expect(names).toHaveLength(2)
  const second = await call(server, `GET /v1/locks?prefix=x%2F&limit=2&cursor=${encodeURIComponent(cursor)}`)
  expect([...names, ...(second.body as unknown as { names: string[] }).names]).toEqual(['x/1', 'x/2', 'x/3'])
})

it('takes the rest of the path as the name, dots and slashes too', async () => {
  const server = await serve()
  for (const name of ['a/../b', './x', 'ä ö?', '%2F', 'a//b']) {
    await take(server, { name })
    const path = name.split('/').map(encodeURIComponent).join('/')
    const { body } = await call(server, `GET /v1/locks/${path}`)
    expect(body).toMatchObject({ name, holders: [{}] })
  }
})

it('tells what happens to locks as server-sent events', async () => {
  const server = await serve()
  const heard = await listen(server, '/v1/events?prefix=jobs')
  await take(server, { name: 'other' })
  const { lease, token } = await take(server, { name: 'jobs/1', owner: 'me' })
  await call(server, 'POST /v1/release', { body: { name: 'jobs/1', lease } })
  await eventually('both are told', () => heard.text.includes('event: released'))
  const facts = JSON.stringify({ name: 'jobs/1', owner: 'me', token: String(token) })
  expect(heard.text).toBe(`: watching\n\nevent: held\ndata: ${facts}\n\nevent: released\ndata: ${facts}\n\n`)
})

it('counts waits, holds and losses by store', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a' })
  await take(server, { name: 'b', ttl: 100 })
  await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await eventually('the second one is lost', async () => {
    const { text } = await call(server, 'GET /v1/metrics')
    return text.includes('holdfast_leases_ended_total{store="memory",end="lost"} 1')
  })
  const { text, headers } = await call(server, 'GET /v1/metrics')
  expect(headers['content-type']).toContain('text/plain')
  for (const line of [
    'holdfast_claims_total{store="memory",result="held"} 2',
    'holdfast_claims_total{store="memory",result="busy"} 1',
    'holdfast_leases_ended_total{store="memory",end="released"} 1',
    'holdfast_hold_seconds_count{store="memory"} 2',
    'holdfast_wait_seconds_bucket{store="memory",le="+Inf"} 2',
    'holdfast_held{store="memory"} 0',
    'holdfast_waiting{store="memory"} 0',
    'holdfast_ready{store="memory"} 1',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
})

it('refuses a kind of lock that its store does not have', async () => {
  const store = memoryStore()
  const capabilities = { ...store.capabilities, shared: false, permits: false }
  const server = await serve({ store: Object.assign(Object.create(store) as typeof store, { capabilities }) })
  for (const share of [{ mode: 'shared' }, { mode: 'write' }, { mode: 'permits', of: 2 }]) {
    const { status, body } = await call(server, 'POST /v1/acquire', { body: { name: 'a', ...share } })
    expect([status, body.error.code]).toEqual([501, 'UNSUPPORTED'])
  }
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'a' } })).status).toBe(200)
})

it('renews for as long as the lease was taken for, if nothing else is said', async () => {
  const server = await serve()
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  const renew = async (more: object): Promise<unknown> =>
    (await call(server, 'POST /v1/renew', { body: { name: 'a', lease, ...more } })).body
  expect(await renew({})).toMatchObject({ outcome: 'renewed', ttl: 60_000 })
  expect(await renew({ ttl: 8000 })).toMatchObject({ ttl: 8000 })
  expect(await renew({})).toMatchObject({ ttl: 8000 })
})

it('renews a lease that another server of the store gave for the default time', async () => {
  const store = memoryStore()
  const [one, other] = [await serve({ store }), await serve({ store })]
  const { lease } = await take(one, { name: 'a', ttl: 60_000 })
  const { body } = await call(other, 'POST /v1/renew', { body: { name: 'a', lease } })
  expect(body).toMatchObject({ outcome: 'renewed', ttl: 15_000 })
})
