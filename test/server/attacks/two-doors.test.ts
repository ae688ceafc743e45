import { expect, it } from 'vitest'

import type { AuditEntry } from '../../../src/server/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import type { Store } from '../../../src/core/contract.ts'
import { call, eventually, look, serve, take } from '../helpers.ts'
import { openSession } from './session.ts'

/** One session, used over HTTP and by a stream: neither takes the other's wake-ups, and no grant goes unrecorded. */

const SESSION = 'a'.repeat(22)
const leaseOf = (letter: string): string => `${SESSION}.${letter.repeat(22)}`
const claim = (name: string, id: string): Record<string, unknown> => {
  const times = { ttl: 60_000, patience: 60_000 }
  return { name, id, weight: 1, capacity: 1, ...times, tokens: 1, whenBusy: 'queue', owner: 'o' }
}

/** Answers later, as a store behind a network does. */
function later(): Store {
  const inner = memoryStore()
  return new Proxy(inner, {
    get: (target, key) => {
      const value = Reflect.get(target, key) as unknown
      if (typeof value !== 'function' || key === 'close') return value
      return async (...given: unknown[]) => {
        await new Promise((resolve) => void setImmediate(resolve))
        return Reflect.apply(value, target, given) as unknown
      }
    },
  })
}

const STORES = { 'its own memory': () => ({ state: null }), 'a store behind it': () => ({ store: later() }) }

it.each(Object.keys(STORES))(
  'keeps a session of a waiting HTTP request from streams, with %s',
  async (kind) => {
    const audit: AuditEntry[] = []
    const server = await serve({
      ...STORES[kind as keyof typeof STORES](),
      audit: (entry) => void audit.push(entry),
    })
    const { lease } = await take(server, { name: 'a', ttl: 60_000 })
    const waiting = take(server, { name: 'a', ttl: 60_000, wait: 20_000, lease: leaseOf('b') })
    await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)

    const session = await openSession(server)
    expect(await session.ask('watch', SESSION)).toMatchObject({ code: 'ID_IN_USE', retryable: false })
    const began = performance.now()
    await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
    await waiting
    // By push, not by its next sign of life.
    expect(performance.now() - began).toBeLessThan(2500)
    expect(audit.filter(({ what }) => what === 'grant')).toHaveLength(1)
    expect(session.events).toEqual([])
  },
)

it.each(Object.keys(STORES))('keeps a session of a stream from HTTP requests, with %s', async (kind) => {
  const audit: AuditEntry[] = []
  const server = await serve({
    ...STORES[kind as keyof typeof STORES](),
    audit: (entry) => void audit.push(entry),
  })
  const session = await openSession(server)
  expect(await session.ask('watch', SESSION)).toEqual({ kind: 'done' })
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  expect(await session.ask('claim', claim('a', `${SESSION}.1`))).toMatchObject({ kind: 'queued' })
  const body = { name: 'a', wait: 20_000, lease: leaseOf('b') }
  const { status, text } = await call(server, 'POST /v1/acquire', { body })
  expect([status, text]).toEqual([409, expect.stringContaining('ID_IN_USE')])

  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await eventually('it is told', () => session.events.length === 1)
  expect(audit.filter(({ what }) => what === 'grant')).toHaveLength(1)
})

it.each(Object.keys(STORES))('wakes all requests whose leases are of one session, with %s', async (kind) => {
  const server = await serve(STORES[kind as keyof typeof STORES]())
  const names = ['a', 'b', 'c']
  const held = await Promise.all(names.map((name) => take(server, { name, ttl: 60_000 })))
  const waiting = names.map((name) => take(server, { name, wait: 20_000, lease: leaseOf(name) }))
  for (const name of names)
    await eventually('it stands in line', async () => (await look(server, name)).waiters.length === 1)
  // The last one first: who leaves must not take the others' wake-ups along.
  const began = performance.now()
  for (const index of [2, 1, 0]) {
    await call(server, 'POST /v1/release', { body: { name: names[index], lease: held[index]?.lease } })
    await waiting[index]
  }
  expect(performance.now() - began).toBeLessThan(2500)
})

it("records a stream's grant in a session in which an HTTP request waits", async () => {
  const audit: AuditEntry[] = []
  const server = await serve({ state: null, audit: (entry) => void audit.push(entry) })
  await take(server, { name: 'a', ttl: 60_000 })
  const body = { name: 'a', wait: 20_000, lease: leaseOf('b') }
  call(server, 'POST /v1/acquire', { body }).catch(() => undefined)
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const session = await openSession(server)
  await session.ask('claim', claim('q', 'other.1'))
  const mine = claim('q', `${SESSION}.1`)
  expect(await session.ask('claim', mine)).toMatchObject({ kind: 'queued' })
  await session.ask('release', { name: 'q', id: 'other.1' })
  const { name, id, ttl, patience } = mine
  await session.ask('renew', [{ name, id, ttl, patience, tokens: 1 }])
  expect(audit.filter(({ what, name: of }) => what === 'grant' && of === 'q')).toHaveLength(1)
})
