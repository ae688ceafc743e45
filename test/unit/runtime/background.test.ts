import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import type { Store } from '../../../src/core/contract.ts'
import { once } from '../../../src/recipes/once.ts'
import { systemEnv } from '../../../src/runtime/env.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { changed } from '../testkit/lesser-stores.ts'
import { world } from './far-store.ts'

const request = new AsyncLocalStorage<string>()
const whose = (): string => request.getStore() ?? 'nobody'

/** A store that notes in whose context it is asked. */
function noting(seen: string[]): Store {
  const store = memoryStore()
  return changed(store, {
    renew: (requests, timeout) => {
      seen.push(`renew for ${whose()}`)
      return store.renew(requests, timeout)
    },
    watch: (session, listener, timeout) => {
      seen.push(`watch for ${whose()}`)
      return store.watch(session, listener, timeout)
    },
  })
}

describe('what no caller waits for', () => {
  it('runs in nobody’s context, whoever came first', async () => {
    const seen: string[] = []
    const holdfast = new Holdfast(noting(seen), { ttl: 60 })
    const lease = await request.run('Ann', () => holdfast.mutex('a').acquire())
    // The second one has to wait, so that it begins to listen.
    const second = request.run('Bob', () => holdfast.mutex('a').acquire())
    await new Promise((resolve) => systemEnv.setTimer(() => resolve(null), 70, false))
    await lease.release()
    await (await second).release()
    await holdfast.close()
    expect(seen).toContain('renew for nobody')
    expect([...new Set(seen)].sort()).toEqual(['renew for nobody', 'watch for nobody'])
  })

  it('is no reason to lose the context of whoever waits', async () => {
    const after = await request.run('Ann', async () => {
      await new Promise<void>((resolve) => systemEnv.defer(resolve))
      return whose()
    })
    expect(after).toBe('Ann')
    const inside = await request.run(
      'Bob',
      () => new Promise((resolve) => systemEnv.defer(() => resolve(whose()))),
    )
    expect(inside).toBe('nobody')
  })
})

/** Every method of a store that a caller's request may lead to. */
const ASKED = ['claim', 'renew', 'release', 'withdraw', 'downgrade', 'watch', 'inspect', 'list'] as const

/** As ORMs have them: what it promises is begun when somebody wants it. */
const lazy = (call: () => unknown): PromiseLike<unknown> => ({
  // eslint-disable-next-line unicorn/no-thenable -- that is the point
  then: (done, fail) => new Promise((resolve) => resolve(call())).then(done, fail),
})
const eager = async (call: () => unknown): Promise<unknown> => call()

describe('what the store is asked', () => {
  it.each([
    ['at once', eager],
    ['when its answer is wanted', lazy],
  ])(
    'is asked in nobody’s context, whoever calls, %s: a client that takes its transaction from there has one for none',
    async (_, begun) => {
      const store = memoryStore()
      const seen = new Map<string, string>()
      let answering = true
      const method = (name: (typeof ASKED)[number]): [string, unknown] => [
        name,
        (...args: unknown[]) =>
          begun(() => {
            if (whose() !== 'nobody' || !seen.has(name)) seen.set(name, whose())
            if (name === 'claim' && !answering) throw new Error('the connection is gone')
            return (store[name] as (...given: unknown[]) => unknown).apply(store, args)
          }),
      ]
      const holdfast = new Holdfast(changed(store, Object.fromEntries(ASKED.map(method))), { ttl: 300 })
      await request.run('Ann', async () => {
        const lock = holdfast.readWriteLock('x')
        await lock.write.run(async (lease) => {
          const next = request.run('Bob', () => lock.read.run(() => {}))
          await lock.downgrade(lease)
          await next
        })
        const mutex = holdfast.mutex('m')
        await Promise.all(['Cid', 'Dan'].map((who) => request.run(who, () => mutex.run(() => {}))))
        await holdfast.inspect('x')
        await holdfast.list()
        await once(holdfast, 'job', { every: 1000, run: () => {} }).tick()
        answering = false
        await holdfast
          .mutex('y')
          .tryAcquire()
          .catch(() => {})
        answering = true
        const held = await mutex.acquire()
        const waiting = request.run('Eve', () => mutex.acquire())
        await held.release()
        await (await waiting).release()
        await holdfast.close()
      })
      expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(ASKED.map((name) => [name, 'nobody'])))
    },
  )
})

describe('holdfast:acquired', () => {
  it('comes in the context of whoever asked, also when another one gives it the lease', async () => {
    const holdfast = new Holdfast(memoryStore())
    const seen: string[] = []
    const note = (): void => void seen.push(whose())
    subscribe('holdfast:acquired', note)
    try {
      await Promise.all(
        ['Ann', 'Bob', 'Cid'].map((who) => request.run(who, () => holdfast.mutex('m').run(() => {}))),
      )
      await request.run('Dan', () => holdfast.mutex('m').tryAcquire())
    } finally {
      unsubscribe('holdfast:acquired', note)
    }
    expect(seen).toEqual(['Ann', 'Bob', 'Cid', 'Dan'])
    await holdfast.close({ drain: 0 })
  })
})

describe('the end of a lease', () => {
  /** Two readers of two requests on one claim, and what they hear. */
  async function readers(): Promise<ReturnType<typeof world> & Heard> {
    const one = world()
    const { env } = one
    const { holdfast } = one.process({ ttl: 300 })
    const { read } = holdfast.readWriteLock('catalog')
    const seen: string[] = []
    const leases: Lease[] = []
    for (const who of ['Ann', 'Bob']) {
      const lease = await env.until(request.run(who, () => read.acquire()))
      request.run(who, () => lease.signal.addEventListener('abort', () => seen.push(`${who} for ${whose()}`)))
      leases.push(lease)
    }
    return { ...one, holdfast, leases, seen }
  }
  interface Heard {
    readonly holdfast: Holdfast
    readonly leases: readonly Lease[]
    readonly seen: string[]
  }

  it('is told in nobody’s context, whoever finds it out', async () => {
    const { env, leases, seen } = await readers()
    const note = (): void => void seen.push(`event for ${whose()}`)
    subscribe('holdfast:lost', note)
    try {
      env.stall(400)
      expect(request.run('Bob', () => leases[1]?.held)).toBe(false)
    } finally {
      unsubscribe('holdfast:lost', note)
    }
    expect(seen.sort()).toEqual(['Ann for nobody', 'Bob for nobody', 'event for nobody', 'event for nobody'])
  })

  it.each([{}, { drain: 0 }, { release: false }])(
    'is told in nobody’s context, whoever closes the Holdfast (%j)',
    async (options) => {
      const { env, holdfast, leases, seen } = await readers()
      const closed = request.run('Cid', () => holdfast.close(options))
      await Promise.all(leases.map((lease) => env.until(lease.release())))
      await env.until(closed)
      expect(seen.sort()).toEqual(['Ann for nobody', 'Bob for nobody'])
    },
  )
})
