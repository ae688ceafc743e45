import { once } from 'node:events'
import { connect, Server } from 'node:net'
import type { Socket } from 'node:net'

import { expect, it, vi } from 'vitest'

import type { ClaimAnswer, ClaimRequest } from '../../src/core/contract.ts'
import { startServer } from '../../src/server/index.ts'
import { RateLimit } from '../../src/server/rate.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { memoryNode } from '../../src/stores/memory/index.ts'
import { quorumStore } from '../../src/stores/quorum/index.ts'
import { afterwards, call, eventually, listen, look, portOf, raw, serve, take } from './helpers.ts'

const claim = (name: string, id: string): ClaimRequest => ({
  name,
  id: `session.${id}`,
  weight: 1,
  capacity: 1,
  ttl: 5000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'me',
})

it('refuses a body, headers or a name that are too long', async () => {
  const server = await serve({ limits: { body: 200, headers: 1000, name: 20 } })
  const long = await call(server, 'POST /v1/acquire', { body: { name: 'a', owner: 'x'.repeat(200) } })
  expect([long.status, long.body.error.code]).toEqual([413, 'TOO_LARGE'])
  const chunked = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\ntransfer-encoding: chunked\r\n\r\n`
  expect(await raw(server, `${chunked}fff\r\n${'x'.repeat(0xfff)}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413 /)
  expect(await raw(server, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(2000)}\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 431 /,
  )
  const name = await call(server, 'POST /v1/acquire', { body: { name: 'ä'.repeat(11) } })
  expect([name.status, name.body.error.message]).toEqual([400, 'name must be at most 20 bytes of UTF-8'])
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'ä'.repeat(10) } })).status).toBe(200)
})

it('refuses one renewal of a ttl beyond its limits, and not those beside it', async () => {
  const server = await serve({ limits: { maxTtl: 10_000 } })
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  const requests = [claim('a', '1'), claim('b', '2')]
  for (const request of requests) expect(await store.claim(request, 2000)).toMatchObject({ kind: 'held' })
  // As of a process that took it before the server had other limits.
  const [long, short] = requests.map((request, index) => ({ ...request, ttl: [20_000, 5000][index] ?? 0 }))
  if (long === undefined || short === undefined) throw new Error('two requests')
  expect(
    await store.renew(
      [
        { ...long, tokens: 0 },
        { ...short, tokens: 0 },
      ],
      2000,
    ),
  ).toMatchObject([{ kind: 'unknown', retryable: false }, { kind: 'renewed' }])
})

it.each([{ minTtl: 20_000 }, { maxTtl: 10_000 }])(
  'takes a lock for a ttl that it allows when nobody says one: %o',
  async (limits) => {
    const server = await serve({ limits })
    const { body } = await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
    expect(body).toMatchObject({ ttl: limits.minTtl ?? limits.maxTtl })
    const said = await call(server, 'POST /v1/renew', { body: { name: 'a', lease: body['lease'] } })
    expect(said.body).toMatchObject({ ttl: limits.minTtl ?? limits.maxTtl })
  },
)

it('takes no lock for longer than the store behind it may', async () => {
  // Its members look on for so long when they come back empty, and then vote whatever is still held.
  const maxTtl = 5000
  const store = quorumStore([memoryNode(), memoryNode(), memoryNode()], { maxTtl, setUp: 'now' })
  const server = await serve({ store })
  const taken = await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  expect(taken.body).toMatchObject({ ttl: maxTtl })
  const longer = { status: 400, body: { error: { code: 'INVALID_ARGUMENT' } } }
  const ttl = maxTtl + 1
  expect(await call(server, 'POST /v1/acquire', { body: { name: 'b', ttl } })).toMatchObject(longer)
  const lease = taken.body['lease']
  expect(await call(server, 'POST /v1/renew', { body: { name: 'a', lease, ttl } })).toMatchObject(longer)
  const remote = holdfastStore(server.url)
  afterwards(() => remote.close())
  const refused = { kind: 'unknown', retryable: false }
  expect(await remote.claim({ ...claim('c', '1'), whenBusy: 'try', ttl }, 2000)).toMatchObject(refused)
})

it('refuses a ttl or a wait beyond its limits, in requests and in sessions', async () => {
  const server = await serve({ limits: { minTtl: 200, maxTtl: 1000, maxWait: 500 } })
  for (const body of [
    { ttl: 199 },
    { ttl: 1001 },
    { ttl: 0 },
    { ttl: -1 },
    { ttl: 200.5 },
    { ttl: '500' },
    { wait: 501 },
    { wait: -1 },
    { wait: 1e300 },
  ]) {
    const { status, body: answer } = await call(server, 'POST /v1/acquire', { body: { name: 'a', ...body } })
    expect([status, answer.error.code], `${JSON.stringify(body)}`).toEqual([400, 'INVALID_ARGUMENT'])
  }
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  expect(await store.claim(claim('a', '1'), 2000)).toMatchObject({ kind: 'unknown', retryable: false })
  expect(store.capabilities).toMatchObject({ minTtl: 200, maxTtl: 1000 })
  expect((await look(server, 'a')).holders).toEqual([])
})

it('lets no principal fill a queue, and still grants what is free', async () => {
  const server = await serve({ limits: { waitersPerName: 2, waitersPerPrincipal: 3 } })
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  const kinds = async (name: string, ids: readonly string[]): Promise<string[]> => {
    const answers: ClaimAnswer[] = []
    for (const id of ids) answers.push(await store.claim(claim(name, `${name}${id}`), 2000))
    return answers.map(({ kind }) => kind)
  }
  expect(await kinds('a', ['1', '2', '3', '4'])).toEqual(['held', 'queued', 'queued', 'unknown'])
  expect(await kinds('b', ['1', '2', '3'])).toEqual(['held', 'queued', 'unknown'])
  expect(await kinds('c', ['1'])).toEqual(['held'])
  const waiting = await call(server, 'POST /v1/acquire', { body: { name: 'c', wait: 5000 } })
  expect([waiting.status, waiting.headers['retry-after'], waiting.body.error.code]).toEqual([
    429,
    '1',
    'TOO_MANY',
  ])
  // Asking again about a place that one has is not a second place.
  expect(await kinds('a', ['2'])).toEqual(['queued'])
  await store.release({ name: 'a', id: 'session.a3' }, undefined, 2000)
  expect(await kinds('b', ['4'])).toEqual(['queued'])
})

it('gives one principal only so many leases', async () => {
  const server = await serve({ limits: { leasesPerPrincipal: 2 } })
  const { lease } = await take(server, { name: 'a' })
  await take(server, { name: 'b' })
  const third = await call(server, 'POST /v1/acquire', { body: { name: 'c' } })
  expect([third.status, third.body.error.code]).toEqual([429, 'TOO_MANY'])
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await take(server, { name: 'c' })
})

it('slows those down who ask too often, and says for how long', async () => {
  const server = await serve({ limits: { requestsPerSecond: 5 } })
  const answers = await Promise.all(Array.from({ length: 15 }, () => call(server, 'GET /v1/locks')))
  const refused = answers.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThanOrEqual(4)
  expect(refused.length).toBeLessThanOrEqual(5)
  expect(refused[0]?.headers['retry-after']).toBe('1')
  expect(refused[0]?.body.error.code).toBe('RATE_LIMITED')
})

it('slows a whole network down: one home has more addresses than there are requests', async () => {
  const server = await serve({ limits: { requestsPerSecond: 1 } })
  let next = 0
  const emit = Reflect.get(Server.prototype, 'emit') as (...given: unknown[]) => boolean
  const arrivals = vi.spyOn(Server.prototype, 'emit').mockImplementation(function (
    this: Server,
    ...given: unknown[]
  ) {
    const [event, socket] = given
    if (event === 'connection')
      Object.defineProperty(socket, 'remoteAddress', { value: `2001:db8:1:2::${(++next).toString(16)}` })
    return Reflect.apply(emit, this, given)
  })
  afterwards(() => arrivals.mockRestore())
  const answers = await Promise.all(Array.from({ length: 15 }, () => call(server, 'GET /v1/locks')))
  expect(next).toBeGreaterThanOrEqual(15)
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(4)
})

it('counts a bucket by its own clock: so many a second, twice as many at once', () => {
  let now = 0
  const limit = new RateLimit(10, () => now)
  for (let number = 0; number < 20; number++) expect(limit.take('a')).toBe(0)
  expect(limit.take('a')).toBe(100)
  expect(limit.take('b')).toBe(0)
  now = 99
  expect(limit.take('a')).toBeGreaterThan(0)
  now = 100
  expect(limit.take('a')).toBe(0)
})

it('makes a session that asks too fast wait, and loses nothing of what it asked', async () => {
  const server = await serve({ limits: { operationsPerSecond: 100 } })
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  const began = performance.now()
  const answers = await Promise.all(
    Array.from({ length: 250 }, async (_, n) => store.inspect(`n${n}`, 10_000)),
  )
  expect(answers.every((answer) => !('kind' in answer))).toBe(true)
  // 200 at once, and the other 50 at a hundred a second.
  expect(performance.now() - began).toBeGreaterThan(350)
})

it('closes a session that sends a line without end, or no line at all', async () => {
  const server = await serve({ limits: { line: 1000 } })
  const upgrade = `GET /v1/session HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\nholdfast-request: 1\r\n\r\n`
  expect(await raw(server, `${upgrade}${'x'.repeat(1001)}`)).toContain('101 Switching')
  for (const nonsense of [
    'hello\n',
    '{}\n',
    '[0,"ping"]\n',
    '["1","ping"]\n',
    '[1e99,"ping"]\n',
    'GET / HTTP/1.1\r\n',
  ]) {
    expect(await raw(server, `${upgrade}${nonsense}`), `${nonsense}`).toContain('101 Switching')
  }
  expect(await raw(server, `${upgrade}[1,"fly",null,1000]\n`, '[1,')).toContain('"retryable":false')
})

it('gives one principal only so many sessions and event streams', async () => {
  const server = await serve({ limits: { streamsPerPrincipal: 2 } })
  const stores = [holdfastStore(server.url), holdfastStore(server.url), holdfastStore(server.url)] as const
  for (const store of stores) afterwards(() => store.close())
  const [first, second, third] = stores
  expect(await first.list({}, 2000)).toEqual({ names: [] })
  expect(await second.list({}, 2000)).toEqual({ names: [] })
  expect(await third.list({}, 2000)).toMatchObject({ kind: 'unknown' })
  expect((await call(server, 'GET /v1/events')).status).toBe(429)
  await first.close()
  await eventually('there is room', async () => 'names' in (await third.list({}, 2000)))
})

it('closes connections that send their headers, or their body, a byte at a time', async () => {
  const server = await serve({ limits: { headersTimeout: 300, requestTimeout: 600 } })
  const head = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\ncontent-length: 5000\r\n\r\n`
  const slow = async (text: string): Promise<string> => {
    const socket = connect(portOf(server), '127.0.0.1')
    let received = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => (received += chunk))
    socket.on('error', () => undefined)
    socket.write(text)
    const drip = setInterval(() => socket.write('a'), 50)
    await new Promise((resolve) => socket.on('close', resolve))
    clearInterval(drip)
    return received
  }
  const [headers, body] = await Promise.all([slow('GET / HTTP/1.1\r\nx: '), slow(head)])
  expect(headers).toMatch(/^HTTP\/1\.1 408 /)
  expect(body).toMatch(/^HTTP\/1\.1 408 |^$/)
})

it('closes a session that has been silent for too long', async () => {
  const server = await serve({ limits: { silence: 100 } })
  const upgrade = `GET /v1/session HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\nholdfast-request: 1\r\n\r\n`
  expect(await raw(server, upgrade)).toContain('"kind":"hello"')
}, 15_000)

it('makes room for newcomers by closing the connections that have been idle for longest', async () => {
  const server = await serve({ limits: { idleConnections: 10, idlePerAddress: 8 } })
  await take(server, { name: 'a' })
  const client = new AbortController()
  afterwards(() => client.abort())
  call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 30_000 }, signal: client.signal }).catch(
    () => undefined,
  )
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const sockets: Socket[] = []
  let closed = 0
  for (let number = 0; number < 50; number++) {
    const socket = connect(portOf(server), '127.0.0.1')
    afterwards(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('close', () => closed++)
    sockets.push(socket)
    await new Promise((resolve) => socket.once('connect', resolve))
  }
  await eventually('the oldest are closed', () => closed === 42)
  expect(sockets.slice(0, 42).every(({ closed: gone }) => gone)).toBe(true)
  // Whoever waits for an answer is not idle.
  expect((await look(server, 'a')).waiters).toHaveLength(1)
})

it('gives many who come at once the time to ask', async () => {
  const server = await serve({ limits: { idleConnections: 10, idlePerAddress: 5 } })
  const sockets = Array.from({ length: 20 }, () => connect(portOf(server), '127.0.0.1'))
  for (const socket of sockets) afterwards(() => socket.destroy())
  await eventually('all are connected', async () => {
    const { text } = await call(server, 'GET /v1/metrics')
    return Number(/^holdfast_connections\{.*\} (\d+)$/m.exec(text)?.[1]) > sockets.length
  })
  const answers = sockets.map(async (socket) => {
    socket.write('GET /v1/locks HTTP/1.1\r\nhost: localhost\r\n\r\n')
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    return bytes.toString('latin1', 9, 12)
  })
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['200']))
})

it('lets silent connections make room, and keeps one of a few from streams', async () => {
  const server = await serve({ limits: { connections: 3 } })
  const follow = await Promise.all([listen(server, '/v1/events'), listen(server, '/v1/events')])
  const silent = connect(portOf(server), '127.0.0.1')
  afterwards(() => silent.destroy())
  await new Promise((resolve) => silent.once('connect', resolve))
  // The silent one makes room.
  expect((await call(server, 'GET /v1/locks')).status).toBe(200)
  expect(follow.map(({ ended }) => ended)).toEqual([false, false])
  expect((await call(server, 'GET /v1/events')).body.error.code).toBe('TOO_MANY')
  expect((await call(server, 'GET /v1/locks')).status).toBe(200)
})

it('refuses limits that make no sense', async () => {
  for (const limits of [{ body: 0 }, { body: 1.5 }, { name: 513 }, { nonsense: 1 }]) {
    await expect(startServer({ listen: '127.0.0.1:0', limits })).rejects.toThrow('limits.')
  }
})
