import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import type { Store } from '../../../src/core/contract.ts'
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
