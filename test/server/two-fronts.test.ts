import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { ALL } from '../../src/core/contract.ts'
import type { NameInfo, Store } from '../../src/core/contract.ts'
import { ClaimRegistry } from '../../src/server/claim-registry.ts'
import type { AuditEntry } from '../../src/server/index.ts'
import { leaveLine } from '../../src/server/leave-line.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { openSession } from './attacks/session.ts'
import type { RawSession } from './attacks/session.ts'
import { afterwards, call, eventually, look, serve, take, temporaryFolder } from './helpers.ts'

/** Several servers of one store: what one of them does not know, because it happened at another. */

const SECRET = `${'a'.repeat(22)}.${'b'.repeat(22)}`
/** Its methods, to be put into another object. */
function bound(store: Store): Store {
  return {
    kind: store.kind,
    capabilities: store.capabilities,
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

const CLAIM = { weight: 1, capacity: 1, ttl: 5000, patience: 5000, tokens: 1, owner: 'o' }

it('a request that hangs up at one server leaves alone what another has granted for its secret', async () => {
  const store = memoryStore()
  const [one, other] = [await serve({ store }), await serve({ store })]
  const holder = await take(one, { name: 'n', ttl: 60_000 })
  const body = { name: 'n', lease: SECRET, wait: 20_000 }
  const gone = new AbortController()
  const first = call(one, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(one, 'n')).waiters.length === 1)
  // The client moves on before the first server knows that it has gone.
  const second = call(other, 'POST /v1/acquire', { body })
  await eventually('it listens there', async () => {
    const { text } = await call(other, 'GET /v1/metrics')
    return text.includes('holdfast_waiting{store="memory"} 1')
  })
  await call(other, 'POST /v1/release', { body: { name: 'n', lease: holder.lease } })
  expect((await second).status).toBe(200)
  gone.abort()
  await first
  const metric = /holdfast_waiting\{store="memory"\} (\d+)/
  await eventually('the first has noticed', async () => {
    return metric.exec((await call(one, 'GET /v1/metrics')).text)?.[1] === '0'
  })
  expect((await look(other, 'n')).holders).toHaveLength(1)
  expect((await call(other, 'POST /v1/renew', { body: { name: 'n', lease: SECRET } })).status).toBe(200)
})

it('a request that hangs up takes nothing, also when the lease before it has just ended', async () => {
  const store = memoryStore()
  const entries: AuditEntry[] = []
  const server = await serve({ store, audit: (entry) => void entries.push(entry) })
  const { lease: id } = await take(server, { name: 'n', ttl: 60_000 })
  const gone = new AbortController()
  const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 20_000 }
  const waiting = call(server, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(server, 'n')).waiters.length === 1)
  // Nobody asks for the lock then, so nobody notices the end.
  await store.renew([{ name: 'n', id, ttl: 1, patience: 1, tokens: 0 }], 1000)
  await new Promise((resolve) => setTimeout(resolve, 5))
  gone.abort()
  await waiting
  await eventually('it has left', () => entries.some(({ what }) => what === 'leave'))
  expect(await look(server, 'n')).toMatchObject({ holders: [], waiters: [] })
})

it('what a request is granted while it hangs up, in front of a store, is left to a client that has moved', async () => {
  const store = memoryStore()
  const late: (() => void)[] = []
  const slowly: Store = {
    ...bound(store),
    renew: (requests, timeout) => {
      const answers = store.renew(requests, timeout)
      return new Promise((resolve) => late.push(() => resolve(answers)))
    },
  }
  const [one, other] = [await serve({ store: slowly }), await serve({ store })]
  const { lease: id } = await take(other, { name: 'n', ttl: 60_000 })
  const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 20_000 }
  const gone = new AbortController()
  const first = call(one, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(other, 'n')).waiters.length === 1)
  await store.renew([{ name: 'n', id, ttl: 1, patience: 1, tokens: 0 }], 1000)
  await new Promise((resolve) => setTimeout(resolve, 5))
  gone.abort()
  await first
  await eventually('it is giving the place up', () => late.length > 0)
  expect((await call(other, 'POST /v1/acquire', { body })).status).toBe(200)
  for (const answer of late) answer()
  await eventually('it counts', async () => {
    return (await call(one, 'GET /v1/metrics')).text.includes('holdfast_held{store="memory"} 1')
  })
  expect((await look(other, 'n')).holders).toHaveLength(1)
})

it.each([true, false])('what it was granted so is released if nobody was told: %s', async (untold) => {
  const store = memoryStore()
  await store.claim({ ...CLAIM, name: 'n', id: 's.1', whenBusy: 'try' }, 1000)
  await store.claim({ ...CLAIM, name: 'n', id: 's.2', whenBusy: 'queue' }, 1000)
  await store.renew([{ name: 'n', id: 's.1', ttl: 1, patience: 1, tokens: 0 }], 1000)
  await new Promise((resolve) => setTimeout(resolve, 5))
  // It answers when its state file is written.
  const durable: Store = { ...bound(store), renew: async (...args) => store.renew(...args) }
  const became = await new Promise((left) => {
    const claim = { ...CLAIM, name: 'n', id: 's.2', whenBusy: 'queue' } as const
    leaveLine(durable, claim, { timeout: 1000, untold: () => untold, left: ({ kind }) => left(kind) })
  })
  const { holders } = (await store.inspect('n', 1000)) as NameInfo
  expect([became, holders.length]).toEqual(untold ? ['queued', 0] : ['held', 1])
})

/** The lease before a request ends at the very moment in which its place is given up. */
async function grantedAtTheEnd(store: Store, told: boolean): Promise<Store> {
  const holder = { ...CLAIM, name: 'n', id: 'holder.1', ttl: 60_000, whenBusy: 'try' } as const
  await store.claim(holder, 1000)
  return {
    ...bound(store),
    watch: (session, listener, timeout) =>
      store.watch(session, (event) => void (told && listener(event)), timeout),
    renew: async (requests, timeout) => {
      if (requests.some(({ patience }) => patience === 1)) await store.release(holder, undefined, 1000)
      return store.renew(requests, timeout)
    },
  }
}

it.each([true, false])(
  'a request in front of a store whose wait is over is told of the lease that it was granted then; the message came: %s',
  async (told) => {
    const store = memoryStore()
    const entries: AuditEntry[] = []
    const audit = (entry: AuditEntry): void => void entries.push(entry)
    const server = await serve({ store: await grantedAtTheEnd(store, told), audit, auditRequired: true })
    const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 200 }
    const answer = await call(server, 'POST /v1/acquire', { body })
    expect([answer.status, answer.body]).toMatchObject([200, { lease: SECRET }])
    const { holders } = (await store.inspect('n', 1000)) as NameInfo
    expect(holders).toMatchObject([{ id: SECRET, token: BigInt(answer.body['token'] ?? 0) }])
    expect(entries.filter(({ what }) => what === 'grant' || what === 'leave')).toMatchObject([
      { what: 'grant' },
    ])
    const { text } = await call(server, 'GET /v1/metrics')
    expect(text).toContain('holdfast_held{store="memory"} 1')
    expect((await call(server, 'POST /v1/release', { body: { name: 'n', lease: SECRET } })).status).toBe(200)
  },
)

it('a request whose wait is over hears so, also where the store does not know its place any more', async () => {
  const store = memoryStore()
  const forgetful: Store = {
    ...bound(store),
    renew: async (requests) => requests.map(() => ({ kind: 'lost' }) as const),
  }
  const server = await serve({ store: forgetful })
  await take(server, { name: 'n', ttl: 60_000 })
  const body = { name: 'n', lease: SECRET, wait: 100 }
  expect((await call(server, 'POST /v1/acquire', { body })).body.error.code).toBe('LOCK_TIMEOUT')
  const { text } = await call(server, 'GET /v1/metrics')
  expect(text).toContain('holdfast_waiting{store="memory"} 0')
})

it('a request that hangs up lets those pass who stood behind it', async () => {
  const store = memoryStore()
  const server = await serve({ store })
  await take(server, { name: 'n', mode: 'shared', ttl: 60_000 })
  const gone = new AbortController()
  const body = { name: 'n', mode: 'write', lease: SECRET, wait: 20_000 }
  const writer = call(server, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(server, 'n')).waiters.length === 1)
  // A reader that shows no sign of life for a minute: it does not ask whether it may.
  const told: string[] = []
  await store.watch('reader', ({ kind }) => void told.push(kind), 1000)
  const reader = {
    ...CLAIM,
    name: 'n',
    id: 'reader.1',
    capacity: ALL,
    patience: 60_000,
    whenBusy: 'queue',
  } as const
  expect(await store.claim(reader, 1000)).toMatchObject({ kind: 'queued' })
  gone.abort()
  await writer
  await eventually('it is told', () => told.includes('granted'))
})

it('a server that is slow to give up a place takes nothing that another has granted since', async () => {
  const store = memoryStore()
  const late: (() => void)[] = []
  /** The same store, by a slow way: what it is to release it hears of when the test says so. */
  const slowly: Store = {
    ...bound(store),
    renew: (requests, timeout) => Promise.resolve(store.renew(requests, timeout)),
    release: (claim, next, timeout) =>
      new Promise((resolve) => late.push(() => resolve(store.release(claim, next, timeout)))),
  }
  const [one, other] = [await serve({ store: slowly }), await serve({ store })]
  const holder = await take(other, { name: 'n', ttl: 60_000 })
  const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 20_000 }
  const gone = new AbortController()
  const first = call(one, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(other, 'n')).waiters.length === 1)
  gone.abort()
  await first
  await eventually('it is giving the place up', () => late.length > 0)
  const second = call(other, 'POST /v1/acquire', { body })
  await eventually('it waits there', async () => (await look(other, 'n')).waiters.length === 1)
  await call(other, 'POST /v1/release', { body: { name: 'n', lease: holder.lease } })
  expect((await second).status).toBe(200)
  for (const release of late) release()
  expect((await look(other, 'n')).holders).toHaveLength(1)
})

it('a request that comes back while its place is given up is counted', async () => {
  const store = memoryStore()
  const late: (() => void)[] = []
  const slowly: Store = {
    ...bound(store),
    renew: (requests, timeout) => {
      const answers = store.renew(requests, timeout)
      return new Promise((resolve) => late.push(() => resolve(answers)))
    },
  }
  const server = await serve({ store: slowly })
  await take(server, { name: 'n', ttl: 60_000 })
  const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 20_000 }
  const gone = new AbortController()
  const first = call(server, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(server, 'n')).waiters.length === 1)
  gone.abort()
  await first
  await eventually('it is giving the place up', () => late.length > 0)
  const second = call(server, 'POST /v1/acquire', { body }).catch(() => 'gone')
  const queuedTwice = /holdfast_claims_total\{[^}]*result="queued"[^}]*\} 2/
  await eventually('it waits again', async () =>
    queuedTwice.test((await call(server, 'GET /v1/metrics')).text),
  )
  for (const answer of late) answer()
  await new Promise((resolve) => setTimeout(resolve, 20))
  const { text } = await call(server, 'GET /v1/metrics')
  expect(text).toContain('holdfast_waiting{store="memory"} 1')
  await call(server, 'POST /v1/release', { body: { name: 'n', lease: SECRET } })
  await second
})

it('a lease that another server has granted is counted where its request hung up', async () => {
  const store = memoryStore()
  const entries: AuditEntry[] = []
  const server = await serve({ store, audit: (entry) => void entries.push(entry) })
  await take(server, { name: 'n', ttl: 60_000 })
  const gone = new AbortController()
  const body = { name: 'n', lease: SECRET, ttl: 60_000, wait: 20_000 }
  const waiting = call(server, 'POST /v1/acquire', { body, signal: gone.signal }).catch(() => 'gone')
  await eventually('it waits', async () => (await look(server, 'n')).waiters.length === 1)
  // Granted by way of another server, and this one hears nothing of it.
  const { holders } = (await store.inspect('n', 1000)) as NameInfo
  await store.watch('a'.repeat(22), () => undefined, 1000)
  await store.release({ name: 'n', id: holders[0]?.id ?? '' }, undefined, 1000)
  gone.abort()
  await waiting
  await eventually('it has left', () => entries.some(({ what }) => what === 'leave'))
  expect(entries.findLast(({ what }) => what === 'leave')?.result).toBe('held')
  const { text } = await call(server, 'GET /v1/metrics')
  expect(text).toContain('holdfast_waiting{store="memory"} 0')
})

it('a session that moves is told of a grant when it is recorded where it is now, and not before', async () => {
  const store = memoryStore()
  const entries: AuditEntry[] = []
  let full = false
  const audit = (entry: AuditEntry): void => {
    if (full) throw new Error('ENOSPC')
    entries.push(entry)
  }
  const [one, other] = [await serve({ store }), await serve({ store, audit, auditRequired: true })]
  /** It waits at the first server, goes to the second, and is granted. */
  const moved = async (name: string): Promise<RawSession> => {
    const holder = await take(one, { name, ttl: 60_000 })
    const before = await openSession(one)
    await before.ask('watch', name)
    await before.ask('claim', { ...CLAIM, name, id: `${name}.1`, whenBusy: 'queue' })
    const now = await openSession(other)
    await now.ask('watch', name)
    await call(one, 'POST /v1/release', { body: { name, lease: holder.lease } })
    return now
  }
  const renewal = (name: string) => ({ name, id: `${name}.1`, ttl: 5000, patience: 5000, tokens: 1 })
  const grants = (): number => entries.filter(({ what }) => what === 'grant').length

  const recorded = await moved('recorded')
  await eventually('it is told', () => recorded.events.length === 1)
  expect(grants()).toBe(1)
  await recorded.ask('renew', [renewal('recorded')])
  expect(grants()).toBe(1)

  full = true
  const silent = await moved('silent')
  expect(await silent.ask('renew', [renewal('silent')])).toMatchObject([{ kind: 'unknown' }])
  expect(silent.events).toEqual([])
})

it('leases of other servers are remembered while they last, and no more of them than a number', () => {
  const book = new ClaimRegistry('memory')
  afterwards(() => book.close())
  const renewal = (id: string) => ({ name: 'n', id, ttl: 3_600_000, patience: 0, tokens: 0 })
  const renewed = { kind: 'renewed', contended: false } as const
  for (let at = 0; at < 50_001; at++) book.renewed(renewal(`s.${at}`), renewed)
  const known = (id: string): boolean => book.isVisitor({ name: 'n', id })
  expect([known('s.0'), known('s.1'), known('s.50000')]).toEqual([false, true, true])
  book.released({ name: 'n', id: 's.1' }, { kind: 'released' })
  book.renewed(renewal('s.2'), { kind: 'lost' })
  expect([known('s.1'), known('s.2'), known('s.3')]).toEqual([false, false, true])
})

it('lines for which there was no room are counted, and the audit log says how many', async () => {
  const fifo = join(temporaryFolder(), 'audit')
  execFileSync('mkfifo', [fifo])
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  afterwards(() => closeSync(reader))
  const server = await serve({ audit: fifo })
  const session = await openSession(server)
  const claims = 4000
  for (let at = 0; at < claims; at += 100) {
    const asked = Array.from({ length: 100 }, (_, one) => {
      const name = `${'x'.repeat(300)}${at + one}`
      return session.ask('claim', { ...CLAIM, ttl: 600_000, name, id: `s.${at + one}`, whenBusy: 'try' })
    })
    await Promise.all(asked)
  }
  let text = ''
  const buffer = Buffer.alloc(1 << 16)
  await eventually('it has caught up', async () => {
    // Somebody reads again, and the next line tries to write the others.
    await session.ask('claim', { ...CLAIM, name: 'after', id: 's.after', whenBusy: 'try' })
    try {
      for (;;) text += buffer.toString('utf8', 0, readSync(reader, buffer))
    } catch {
      return text.includes('"missed"') && text.endsWith('\n')
    }
  })
  const lines = text.trimEnd().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as AuditEntry)
  const recorded = entries.filter(({ name }) => name?.startsWith('x') === true).length
  const missed = entries
    .filter(({ what }) => what === 'missed')
    .reduce((sum, { count = 0 }) => sum + count, 0)
  expect(recorded).toBeLessThan(claims)
  expect(recorded + missed).toBeGreaterThanOrEqual(claims)
})

it('believes nothing of a store that leaves out what it does not find: which answer is whose, nobody can say', async () => {
  const inner = memoryStore()
  const renew: Store['renew'] = async (requests, timeout) =>
    (await inner.renew(requests, timeout)).filter(({ kind }) => kind !== 'lost')
  const server = await serve({ store: { ...bound(inner), renew } })
  const [first, second] = [await take(server, { name: 'n' }), await take(server, { name: 'm' })]
  const { holders } = (await inner.inspect('n', 0)) as NameInfo
  await inner.withdraw({ name: 'n', id: holders[0]?.id ?? '' }, 0)
  const leases = [
    { name: 'n', lease: first.lease },
    { name: 'm', lease: second.lease },
  ]
  const { body } = await call(server, 'POST /v1/renew', { body: { leases } })
  expect(body).toMatchObject({ leases: [{ outcome: 'unknown' }, { outcome: 'unknown' }] })
})
