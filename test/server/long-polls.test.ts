import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest, Store, StoreListener, Watch } from '../../src/core/contract.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { afterwards, call, eventually, look, serve, take } from './helpers.ts'

/** What requests that wait over HTTP add up to at the store. */

interface Watched {
  readonly store: Store
  /** Of each session that somebody listens for. */
  readonly listeners: Map<string, StoreListener>
  /** How many renewals the store was asked for. */
  renewals: number
}

/** A store across a network: it works on requests in the order in which they come, and is heard of a little later. */
function distant(delay: number): Watched {
  const inner = memoryStore()
  const listeners = new Map<string, StoreListener>()
  const later = async <T>(answer: T): Promise<Awaited<T>> => {
    const settled = await answer
    await sleep(delay)
    return settled
  }
  const store: Store = Object.assign(Object.create(inner) as Store, {
    claim: (...given: Parameters<Store['claim']>) => later(inner.claim(...given)),
    release: (...given: Parameters<Store['release']>) => later(inner.release(...given)),
    renew: (requests: readonly RenewRequest[], timeout: number) => {
      watched.renewals += requests.length
      return later(inner.renew(requests, timeout))
    },
    watch: async (session: string, listener: StoreListener, timeout: number) => {
      const watch = (await inner.watch(session, listener, timeout)) as Watch
      listeners.set(session, listener)
      // It may have to make a connection for it first.
      await sleep(delay * 4)
      const stop = (): void => {
        listeners.delete(session)
        watch.stop()
      }
      return { kind: 'watching', stop }
    },
  })
  const watched: Watched = { store, listeners, renewals: 0 }
  return watched
}

it('asks once for everybody who waits when the store was out of reach, not once for each of them', async () => {
  const waiters = 200
  const watched = distant(1)
  const server = await serve({ store: watched.store })
  await take(server, { name: 'a', ttl: 60_000 })
  const clients = new AbortController()
  setMaxListeners(0, clients.signal)
  afterwards(() => clients.abort())
  for (let at = 0; at < waiters; at++)
    call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 60_000 }, signal: clients.signal }).catch(
      () => undefined,
    )
  await eventually('all stand in line', async () => (await look(server, 'a')).waiters.length === waiters)
  const before = watched.renewals
  for (const listener of watched.listeners.values()) listener({ kind: 'gap' })
  await sleep(500)
  // Besides what shows every three seconds that they are there.
  expect(watched.renewals - before).toBeGreaterThanOrEqual(waiters)
  expect(watched.renewals - before).toBeLessThan(waiters * 5)
})

it('listens for nobody who has gone, also if a sign of life was shown while it asked for the first time', async () => {
  const watched = distant(50)
  const server = await serve({ store: watched.store })
  await take(server, { name: 'a', ttl: 60_000 })
  const line = new AbortController()
  afterwards(() => line.abort())
  const wait = (signal: AbortSignal): Promise<unknown> =>
    call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 60_000 }, signal }).catch(() => undefined)
  const stays = wait(line.signal)
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const [first] = watched.listeners.values()
  const clients = new AbortController()
  const gone: Promise<unknown>[] = []
  for (let at = 0; at < 10; at++) {
    gone.push(wait(clients.signal))
    await sleep(10)
    first?.({ kind: 'gap' })
  }
  await eventually('all stand in line', async () => (await look(server, 'a')).waiters.length === 11)
  await sleep(300)
  clients.abort()
  await Promise.all(gone)
  await eventually('all are gone', async () => (await look(server, 'a')).waiters.length === 1)
  await sleep(300)
  expect(watched.listeners.size).toBe(1)
  line.abort()
  await stays
})

it('tells a request with a secret of its own what it has been granted, also if the store answers after its wait', async () => {
  const { store } = distant(100)
  const server = await serve({ store })
  const body = { name: 'a', wait: 10, ttl: 60_000, lease: `${'s'.repeat(30)}.${'t'.repeat(30)}` }
  expect(await call(server, 'POST /v1/acquire', { body })).toMatchObject({
    status: 200,
    body: { lease: body.lease },
  })
  // Who does not get it in time leaves nothing.
  const late = { ...body, lease: `${'u'.repeat(30)}.${'v'.repeat(30)}` }
  for (const wait of [10, 150, 600, 650]) {
    const { body: answer } = await call(server, 'POST /v1/acquire', { body: { ...late, wait } })
    expect(answer.error.code).toBe('LOCK_TIMEOUT')
  }
  await eventually('nobody waits', async () => (await look(server, 'a')).waiters.length === 0)
})

/** A store that is asked to listen, and does so when it is told to. */
function slowToListen(): { readonly store: Store; readonly claims: ClaimRequest[]; listen: () => void } {
  const inner = memoryStore()
  const claims: ClaimRequest[] = []
  const kept = { claims, listen: (): void => undefined, store: inner }
  const listening = new Promise<void>((resolve) => (kept.listen = resolve))
  kept.store = Object.assign(Object.create(inner) as Store, {
    claim: (request: ClaimRequest, timeout: number) => {
      claims.push(request)
      return inner.claim(request, timeout)
    },
    watch: (session: string, listener: StoreListener, timeout: number) =>
      listening.then(() => inner.watch(session, listener, timeout)),
  })
  return kept
}

it('asks for a lock also while the store has not said that it listens', async () => {
  const { store } = slowToListen()
  const server = await serve({ store })
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  const waits = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 4000 } })
  const gone = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 100 } })
  expect((await gone).body.error.code).toBe('LOCK_TIMEOUT')
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await waits).status).toBe(200)
})

it('stands in line once when the store listens at last', async () => {
  const { store, claims, listen } = slowToListen()
  const server = await serve({ store })
  const { lease } = await take(server, { name: 'a', ttl: 60_000 })
  const own = `${'s'.repeat(30)}.${'t'.repeat(30)}`
  const body = { name: 'a', wait: 60_000, lease: own }
  const earlier = call(server, 'POST /v1/acquire', { body })
  await eventually('it is asked for', () => claims.some(({ id }) => id === own))
  // It is the later request that listens then.
  const later = call(server, 'POST /v1/acquire', { body })
  expect((await earlier).status).toBe(409)
  await eventually('it was asked for again', () => claims.filter(({ id }) => id === own).length > 3)
  listen()
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
  const asked = claims.length
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await later).status).toBe(200)
  expect(claims.length).toBe(asked)
})

it('asks for nothing more when its wait is over and its place is given up', async () => {
  const { store, claims } = slowToListen()
  const own = `${'s'.repeat(30)}.${'t'.repeat(30)}`
  const body = { name: 'a', weight: 1, capacity: 1, tokens: 1, ttl: 60_000, patience: 60_000, owner: 'x' }
  let asked = 0
  const slow: Store = Object.assign(Object.create(store) as Store, {
    renew: async () => {
      asked = claims.length
      // Longer than the pause between two questions.
      await sleep(700)
      return [{ kind: 'lost' }]
    },
  })
  const server = await serve({ store: slow })
  await take(server, { name: 'a', ttl: 60_000 })
  // It stands in line since it asked at another server.
  await store.claim({ ...body, id: own, whenBusy: 'queue' }, 1000)
  const late = await call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 100, lease: own } })
  expect(late.body.error.code).toBe('LOCK_TIMEOUT')
  expect(asked).toBeGreaterThan(0)
  expect(claims.length).toBe(asked)
})

/**
 * A store that does not tell whose turn it is, and has no tokens left for a lease that somebody was told of already. The
 * contract allows both.
 */
function reluctant(): { readonly store: Store; untold: number } {
  const { store } = distant(1)
  const watch = store.watch.bind(store)
  const renew = store.renew.bind(store)
  const told = new Set<string>()
  const kept = { store, untold: 0 }
  Object.assign(store, {
    watch: (session: string, listener: StoreListener, timeout: number) =>
      watch(session, (event) => (event.kind === 'granted' ? void kept.untold++ : listener(event)), timeout),
    renew: async (requests: readonly RenewRequest[], timeout: number) => {
      const answers = await renew(requests, timeout)
      return answers.map((answer, index) => {
        const { id = '' } = requests[index] ?? {}
        if (answer.kind === 'held' && told.has(id)) return { kind: 'renewed', contended: true }
        if (answer.kind !== 'queued') told.add(id)
        return answer
      })
    },
  })
  return kept
}

it.each(['with its next sign of life', 'when its wait is over'])(
  'tells a request that waits of its lease, if a renewal with its secret heard of that first: %s',
  async (found) => {
    const kept = reluctant()
    const server = await serve({ store: kept.store })
    const { lease } = await take(server, { name: 'a', ttl: 60_000 })
    const own = `${'s'.repeat(30)}.${'t'.repeat(30)}`
    const wait = found === 'when its wait is over' ? 1000 : 10_000
    const asked = call(server, 'POST /v1/acquire', { body: { name: 'a', wait, ttl: 60_000, lease: own } })
    await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)
    await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
    // The store makes the waiter a holder when it is asked; the word of it does not arrive.
    const renewed = await call(server, 'POST /v1/renew', { body: { name: 'a', lease: own } })
    expect(renewed.body).toMatchObject({ outcome: 'renewed' })
    const { status, body } = await asked
    expect([status, body]).toEqual([200, expect.objectContaining({ lease: own })])
    const { holders } = await look(server, 'a')
    expect(holders).toMatchObject([{ token: (body as unknown as { token: string }).token }])
  },
)
