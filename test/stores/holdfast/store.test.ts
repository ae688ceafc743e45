import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, expect, it, vi } from 'vitest'

import type { ClaimRequest, Store, StoreEvent } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/index.ts'
import { hashToken, startServer } from '../../../src/server/index.ts'
import type { RunningServer, ServerOptions } from '../../../src/server/index.ts'
import { InvalidArgumentError } from '../../../src/core/errors.ts'
import { holdfastStore, openHoldfastStore } from '../../../src/stores/holdfast/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { FaultProxy } from '../../../src/testkit/index.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step()
})

async function serve(options: ServerOptions = {}): Promise<RunningServer> {
  const server = await startServer({ listen: '127.0.0.1:0', ...options })
  undo.push(() => server.close({ grace: 50 }))
  return server
}

const portOf = ({ address }: RunningServer): number => Number(address.split(':').at(-1))

async function proxied(server: RunningServer): Promise<{ proxy: FaultProxy; store: Store }> {
  const proxy = await FaultProxy.open({ host: '127.0.0.1', port: portOf(server) })
  undo.push(() => proxy.close())
  return { proxy, store: client(`holdfast://127.0.0.1:${proxy.port}`) }
}

function client(url: string): Store {
  const store = holdfastStore(url)
  undo.push(() => store.close())
  return store
}

const request = (name: string, id: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  name,
  id,
  weight: 1,
  capacity: 1,
  ttl: 5000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'me',
  ...more,
})

async function eventually(what: string, check: () => boolean, within = 5000): Promise<void> {
  const end = performance.now() + within
  while (!check()) {
    if (performance.now() > end) throw new Error(`not within ${within} ms: ${what}`)
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
}

async function watch(store: Store, session: string): Promise<StoreEvent[]> {
  const events: StoreEvent[] = []
  const answer = await store.watch(session, (event) => void events.push(event), 2000)
  expect(answer.kind).toBe('watching')
  return events
}

it('knows what the store behind the server can do', async () => {
  const memory = memoryStore()
  const weak = { ...memory.capabilities, permits: false, shared: false, maxTtl: 60_000 }
  const server = await serve({
    store: { ...methodsOf(memory), kind: 'weak', capabilities: weak },
    limits: { minTtl: 250 },
  })
  const store = await openHoldfastStore(server.url)
  undo.push(() => store.close())
  // A store in the server's memory ends with the server, and its clients do not.
  const guarantees = { ...weak.guarantees, partition: 'holds', storeRestart: 'breaks' }
  expect(store.capabilities).toEqual({ ...weak, reach: 'machine', minTtl: 250, guarantees })
  expect(() => new Holdfast(store).semaphore('a', 2)).toThrow('no semaphores')
})

it.each([
  ['', true],
  [', unless it forgets them', false],
])('knows that a server waits for its leases after a crash%s', async (_, waits) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-state-'))
  undo.push(() => rmSync(folder, { recursive: true }))
  const server = await serve({ state: waits ? join(folder, 'state.json') : null })
  const store = await openHoldfastStore(server.url)
  undo.push(() => store.close())
  expect(store.capabilities.waitsAfterCrash).toBe(waits)
})

it('cannot turn a writer into a reader where the store behind the server cannot, and knows it', async () => {
  const memory = memoryStore()
  const server = await serve({
    store: { ...methodsOf(memory), kind: 'stiff', capabilities: memory.capabilities },
  })
  const store = client(server.url)
  const holdfast = new Holdfast(store)
  const lock = holdfast.readWriteLock('a')
  // Nothing is known of the server yet.
  const unheard = store.downgrade
  expect(unheard).toBeDefined()
  const lease = await lock.write.acquire()
  expect(store.downgrade).toBeUndefined()
  await expect(lock.downgrade(lease)).rejects.toMatchObject({ code: 'UNSUPPORTED' })
  lease.assertHeld()
  expect(await unheard?.({ name: 'a', id: 's.1' }, 2000)).toMatchObject({ kind: 'unknown', retryable: false })
  await holdfast.close({ drain: 0 })
})

function methodsOf(store: Store): Omit<Store, 'kind' | 'capabilities'> {
  return {
    claim: (...args) => store.claim(...args),
    renew: (...args) => store.renew(...args),
    release: (...args) => store.release(...args),
    withdraw: (...args) => store.withdraw(...args),
    watch: (...args) => store.watch(...args),
    inspect: (...args) => store.inspect(...args),
    list: (...args) => store.list(...args),
    close: () => store.close(),
  }
}

it('renews many leases whose names are long in JSON: no line is too long for the server', async () => {
  const store = client((await serve()).url)
  const requests = Array.from({ length: 150 }, (_, index) =>
    request(`${index}${'"'.repeat(500)}`, `session.${index}`),
  )
  await Promise.all(requests.map(async (one) => store.claim(one, 5000)))
  const answers = await store.renew(requests, 5000)
  expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['held']))
  expect(answers).toHaveLength(150)
})

it('asks once for an acquire and once for a release, and once for many renewals', async () => {
  const server = await serve()
  const { proxy, store } = await proxied(server)
  await store.list({}, 2000)
  const packets: string[] = []
  // Nothing is cut: the matcher only looks.
  proxy.cutReply({ match: (chunk) => (packets.push(chunk.toString('utf8')), false) }).catch(() => undefined)
  const holdfast = new Holdfast(store)
  const lease = await holdfast.mutex('a').acquire()
  await lease.release()
  expect(packets.map((packet) => packet.split('"')[1])).toEqual(['claim', 'release'])
  packets.length = 0
  const claims = Array.from({ length: 250 }, (_, n) => request(`n${n}`, `session.${n}`))
  await Promise.all(claims.map(async (one) => store.claim(one, 5000)))
  await store.renew(
    claims.map((one) => ({ ...one, tokens: 0 })),
    5000,
  )
  expect(packets.join('').match(/"renew"/g)).toHaveLength(3)
  await holdfast.close()
})

it('is woken by the server, and hands a lock over without asking', async () => {
  const server = await serve()
  const store = client(server.url)
  const [a, b] = [new Holdfast(store), new Holdfast(client(server.url))]
  const lease = await a.mutex('x').acquire()
  const began = performance.now()
  const waiting = b
    .mutex('x')
    .acquire({ wait: 20_000 })
    .then((next) => ({ next, at: performance.now() }))
  await eventually('it waits', () => performance.now() - began > 100)
  const released = performance.now()
  await lease.release()
  const { next, at } = await waiting
  // A poll would come after a third of the patience, 1.7 seconds.
  expect(at - released).toBeLessThan(1000)
  await next.release()
  await a.close()
  await b.close()
})

it('listens again after a lost connection, and says that something may have been missed', async () => {
  const server = await serve()
  const { proxy, store } = await proxied(server)
  const direct = client(server.url)
  const events = await watch(store, 'session')
  await direct.claim(request('a', 'other.1'), 2000)
  expect(await store.claim(request('a', 'session.1'), 2000)).toMatchObject({ kind: 'queued' })
  await proxy.refuse()
  proxy.reset()
  await direct.release({ name: 'a', id: 'other.1' }, undefined, 2000)
  expect(events).toEqual([])
  await proxy.accept()
  await eventually('the gap is told', () => events.some(({ kind }) => kind === 'gap'))
  const [answer] = await store.renew([{ ...request('a', 'session.1'), tokens: 1 }], 2000)
  expect(answer).toMatchObject({ kind: 'held' })
  // And from now on it is told again.
  await direct.claim(request('a', 'other.2'), 2000)
  await eventually('the queue behind it is told', () => events.some(({ kind }) => kind === 'contended'))
})

it('asks again to listen where the server could not take that after a lost connection', async () => {
  const memory = memoryStore()
  let away = false
  const watching: Store['watch'] = (...args) =>
    away ? { kind: 'unknown', cause: new Error('away') } : memory.watch(...args)
  const behind = {
    ...methodsOf(memory),
    kind: 'front',
    capabilities: memory.capabilities,
    watch: vi.fn<Store['watch']>(watching),
  }
  const server = await serve({ store: behind })
  const { proxy, store } = await proxied(server)
  const direct = client(server.url)
  const events = await watch(store, 'session')
  await store.claim(request('a', 'session.1'), 2000)
  away = true
  proxy.reset()
  await eventually('it has asked', () => behind.watch.mock.calls.length === 2)
  expect(events).toEqual([])
  away = false
  await eventually('the gap is told', () => events.length > 0)
  await direct.claim(request('a', 'other.1'), 2000)
  await eventually('it is told again', () => events.length > 1)
  expect(events.map(({ kind }) => kind)).toEqual(['gap', 'contended'])
  // Once more for the two connections together, and not for each of them.
  proxy.reset()
  await eventually('it is back', () => events.length > 2)
  expect(behind.watch).toHaveBeenCalledTimes(4)
})

it('takes a connection that says nothing any more for dead, and makes a new one', async () => {
  const server = await serve()
  const { proxy, store } = await proxied(server)
  expect(await store.list({}, 2000)).toEqual({ names: [] })
  proxy.set('replies', { blackhole: true })
  expect(await store.list({}, 1200)).toMatchObject({ kind: 'unknown' })
  proxy.set('replies', {})
  expect(await store.list({}, 2000)).toEqual({ names: [] })
  expect(proxy.accepted).toBe(2)
})

it('takes the same session over from a connection that is not known to be dead', async () => {
  const server = await serve()
  const { proxy, store } = await proxied(server)
  const events = await watch(store, 'session')
  // The server does not see the end of the first connection; the client does.
  proxy.set('requests', { blackhole: true })
  proxy.set('replies', { blackhole: true })
  await store.list({}, 1100)
  proxy.heal()
  await eventually('it is back', () => events.some(({ kind }) => kind === 'gap'))
  await store.claim(request('a', 'session.1'), 2000)
  const direct = client(server.url)
  await direct.claim(request('a', 'other.1'), 2000)
  await eventually('it is told', () => events.some(({ kind }) => kind === 'contended'))
  // The old connection's end must not take the new one's watch with it.
  proxy.reset()
  await eventually('it is back again', () => events.filter(({ kind }) => kind === 'gap').length === 2)
  await direct.release({ name: 'a', id: 'other.1' }, undefined, 2000)
  await direct.claim(request('a', 'other.2'), 2000)
  await eventually('it is told again', () => events.filter(({ kind }) => kind === 'contended').length === 2)
  expect(events.map(({ kind }) => kind)).toEqual(['gap', 'contended', 'gap', 'contended'])
})

it('answers unknown in time when nobody answers, and sends nothing afterwards', async () => {
  const received: string[] = []
  const sockets = new Set<Socket>()
  // Accepts, and says nothing: not even yes to the upgrade.
  const mute = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => void received.push(bytes.toString('utf8')))
  })
  await new Promise<void>((resolve) => void mute.listen(0, '127.0.0.1', resolve))
  undo.push(() => {
    for (const socket of sockets) socket.destroy()
    mute.close()
  })
  const store = client(`holdfast://127.0.0.1:${(mute.address() as AddressInfo).port}`)
  const began = performance.now()
  const answers = await Promise.all([
    store.claim(request('a', 'session.1'), 150),
    store.release(request('a', 'session.1'), request('a', 'session.2'), 100),
    store.renew([request('a', 'session.1')], 120),
  ])
  expect(performance.now() - began).toBeLessThan(5000)
  expect(answers).toMatchObject([
    { kind: 'unknown' },
    { released: { kind: 'unknown' }, next: { kind: 'unknown' } },
    [{ kind: 'unknown' }],
  ])
  for (const socket of sockets)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\n\r\n')
  await new Promise((resolve) => void setTimeout(resolve, 100))
  expect(received.join('')).not.toContain('claim')
})

it("says at once that nobody is there, without keeping the address's token in its words", async () => {
  const free = createServer()
  await new Promise<void>((resolve) => void free.listen(0, '127.0.0.1', resolve))
  const { port } = free.address() as AddressInfo
  await new Promise((resolve) => void free.close(resolve))
  const url = `holdfast://:secret-token-of-some-length@127.0.0.1:${port}`
  const store = client(url)
  const answer = await store.inspect('a', 5000)
  expect(answer).toMatchObject({ kind: 'unknown' })
  const failure = await openHoldfastStore(url).catch((error: unknown) => error as Error & { cause: Error })
  if (!(failure instanceof Error)) throw new Error('it opened')
  expect(failure.message).toContain(`127.0.0.1:${port}`)
  expect(`${failure.message}${String(failure.cause)}`).not.toContain('secret')
  for (const wrong of [
    'holdfast:',
    'http://x',
    'holdfast+unix:relative',
    'holdfast+unix://:secret@/h',
    'holdfast://',
    `x://:secret@h`,
  ]) {
    expect(() => holdfastStore(wrong)).toThrow('url must look like')
    expect(() => holdfastStore(wrong)).not.toThrow('secret')
  }
  for (const wrong of [
    'holdfast+unix:/a%zz',
    'holdfast://:secret%@h',
    'holdfast://secret@h',
    'holdfast://:secret@h/shop',
    'holdfast://h?token=secret',
    'holdfast://:secret@h#shop',
  ]) {
    expect(() => holdfastStore(wrong)).toThrow(InvalidArgumentError)
    expect(() => holdfastStore(wrong)).not.toThrow('secret')
  }
})

it('takes a token as it stands in a file, and refuses what no header may hold', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'holdfast-tokens-')), 'tokens')
  const token = 'a-token-of-more-than-22-characters'
  writeFileSync(file, `seller ${hashToken(token)} acquire *\n`, { mode: 0o600 })
  const server = await serve({ tokensFile: file })
  const store = await openHoldfastStore(server.url, { token: `${token}\r\n` })
  expect(await store.claim(request('a', 'session.1'), 5000)).toMatchObject({ kind: 'held' })
  await store.close()
  for (const wrong of ['', '\n', 'two words', 'schlüssel', 5])
    expect(() => holdfastStore(server.url, { token: wrong as string })).toThrow('token must be one word')
  await expect(openHoldfastStore(server.url, { token: `${token}-not` })).rejects.toThrow(
    'refused: A valid bearer token is needed.',
  )
})

it('fails its requests, and no more than those, when it is closed', async () => {
  const server = await serve()
  const store = holdfastStore(server.url)
  const events = await watch(store, 'session')
  const asked = store.list({}, 2000)
  await store.close()
  expect(await asked).toMatchObject({ kind: 'unknown' })
  expect(await store.list({}, 2000)).toMatchObject({ kind: 'unknown' })
  expect(events).toEqual([])
})
