import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { afterEach, describe, expect, it, vi } from 'vitest'

import { Holdfast, InvalidArgumentError, LockTimeoutError } from '../../../src/index.ts'
import type { HoldfastError, Lease } from '../../../src/index.ts'
import { sections } from '../../../src/runtime/sections.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { isClean, world } from '../runtime/far-store.ts'

/** What users' code does in the middle of ours: in a listener, in a subscriber, with other timers than ours. */

afterEach(() => {
  vi.unstubAllGlobals()
})

const codeOf = (error: HoldfastError): string => error.code

function depthOf(holding: unknown): number {
  const { outer } = (holding ?? {}) as { readonly outer?: unknown }
  return holding === undefined ? 0 : 1 + depthOf(outer)
}

describe('a listener that is told', () => {
  it('of the first of several leases that are lost together finds none of them held', async () => {
    const { env, process } = world()
    const { read } = process({ ttl: 300 }).holdfast.readWriteLock('x')
    const leases = [await env.until(read.acquire()), await env.until(read.acquire())]
    const held: boolean[] = []
    const look = (): void => void held.push(...leases.map((lease) => lease.held))
    subscribe('holdfast:lost', look)
    for (const { signal } of leases) signal.addEventListener('abort', look)
    env.stall(400)
    look()
    unsubscribe('holdfast:lost', look)
    // Two events, two signals, and whoever looked first.
    expect(held).toEqual(Array.from({ length: 10 }, () => false))
  })

  it.each(['mutex', 'read'] as const)(
    'of the end of a nested lease may look at the outer one, which is over too (%s)',
    async (kind) => {
      const { env, process } = world()
      const [a, b] = [process(), process()]
      const lock =
        kind === 'mutex' ? a.holdfast.mutex('x', { reentrant: true }) : a.holdfast.readWriteLock('x').read
      const other = kind === 'mutex' ? b.holdfast.mutex('x') : b.holdfast.readWriteLock('x').write
      const beside = kind === 'read' ? await env.until(lock.acquire()) : null
      let inside = 0
      let most = 0
      const holder = lock.run(
        async (outer: Lease) => {
          const inner = await lock.acquire({ maxHold: 90 })
          inner.signal.addEventListener('abort', () => {
            env.stall(30)
            expect(outer.held).toBe(false)
          })
          await env.sleep(300)
        },
        { maxHold: 100 },
      )
      const lost = holder.then(() => null, codeOf)
      const sections = a.holdfast.outside(() =>
        (kind === 'mutex' ? [1, 2, 3] : []).map(() =>
          lock.run(async () => {
            most = Math.max(most, ++inside)
            await env.sleep(100)
            inside--
          }),
        ),
      )
      const stranger = other.acquire({ wait: 20_000 }).then((lease) => lease.release())
      await env.advance(250)
      const stillIn = beside?.held ?? true
      const released = beside === null ? 'released' : await env.until(beside.release())
      expect({ stillIn, released }).toEqual({ stillIn: true, released: 'released' })
      await env.until(Promise.all(sections))
      expect(await env.until(lost)).toBe('LOCK_LOST')
      expect(await env.until(stranger)).toBe('released')
      expect(most).toBeLessThanOrEqual(1)
    },
  )

  it.each(['mutex', 'read', 'write'] as const)(
    'of the end of a nested lease may look at another one, when the outer one was released and its limit is over (%s)',
    async (kind) => {
      const here = world()
      const { env } = here
      const { holdfast } = here.process()
      const sides = holdfast.readWriteLock('x', { reentrant: true })
      const lock = kind === 'mutex' ? holdfast.mutex('x', { reentrant: true }) : sides[kind]
      const beside = kind === 'read' ? await env.until(lock.acquire()) : null
      const kept = await env.until(
        lock.run(async () => ({ brief: await lock.acquire({ maxHold: 90 }), long: await lock.acquire() }), {
          maxHold: 100,
        }),
      )
      kept.brief.signal.addEventListener('abort', () => {
        env.stall(30)
        expect(kept.long.held).toBe(false)
      })
      let [inside, most] = [beside === null ? 0 : 1, 0]
      const section = async (): Promise<void> => {
        most = Math.max(most, ++inside)
        await env.sleep(50)
        inside--
      }
      const next = kind === 'read' ? sides.write : lock
      const all = Promise.all([next.run(section), next.run(section)])
      await env.advance(300)
      inside -= beside === null ? 0 : 1
      expect((await beside?.release()) ?? 'released').toBe('released')
      await env.until(all)
      expect(most).toBe(1)
      expect(await isClean(here, 'x')).toBe(true)
    },
  )

  it('that the lock was acquired may abort: who has it has it, and those behind get their turn', async () => {
    const holdfast = new Holdfast(memoryStore())
    const mutex = holdfast.mutex('x')
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    const holder = await mutex.acquire()
    const second = mutex.acquire({ signal: controller.signal })
    const third = mutex.acquire({ wait: 2000 })
    subscribe('holdfast:acquired', abort)
    try {
      await holder.release()
      const lease = await second
      expect(lease.held).toBe(true)
      await lease.release()
      expect(await (await third).release()).toBe('released')
    } finally {
      unsubscribe('holdfast:acquired', abort)
    }
    expect((await holdfast.inspect('x')).holders).toEqual([])
    await holdfast.close()
  })
})

describe('fake timers', () => {
  it('hold up no close and no waiter', async () => {
    const store = memoryStore()
    const [a, b] = [new Holdfast(store), new Holdfast(store)]
    vi.stubGlobal('queueMicrotask', () => {})
    const lease = await a.mutex('x').acquire()
    const waiter = b.mutex('x').acquire({ wait: 20_000 })
    const began = performance.now()
    await lease.release()
    await (await waiter).release()
    await Promise.all([a.close(), b.close()])
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  it('end no lease at the memory store', async () => {
    const store = memoryStore()
    const [a, b] = [new Holdfast(store), new Holdfast(store)]
    const lease = await a.mutex('x').acquire()
    const later = { ...performance, timeOrigin: performance.timeOrigin, now: () => 1e9 }
    vi.stubGlobal('performance', later)
    expect(await b.mutex('x').tryAcquire()).toBeNull()
    expect(lease.held).toBe(true)
    await lease.release()
    await Promise.all([a.close(), b.close()])
  })
})

describe('what is told at the end of a wait', () => {
  it('is no outage because of a request that was given up long ago', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const mutex = holdfast.mutex('x')
    store.there = store.back = 1
    store.lose('claim', 'request', 1)
    const controller = new AbortController()
    const given = mutex.acquire({ signal: controller.signal }).then(() => null, codeOf)
    await env.advance(10)
    controller.abort()
    expect(await env.until(given)).toBe('LOCK_ABORTED')
    await env.until(mutex.acquire())
    await env.advance(8000)
    await expect(env.until(mutex.acquire({ wait: 100 }))).rejects.toBeInstanceOf(LockTimeoutError)
  })

  it.each(['abort', 'wait'])('of several locks does not wait for a silent store (%s)', async (how) => {
    const w = world()
    const [p, q] = [w.process(), w.process()]
    await w.env.until(q.holdfast.mutex('b').acquire())
    const controller = new AbortController()
    const began = w.env.mono()
    const options = how === 'abort' ? { signal: controller.signal } : { wait: 50 }
    const set = p.holdfast.all(['a', 'b']).acquire(options)
    const ended = set.catch((error: unknown) => error)
    await w.env.advance(20)
    p.store.lose('any', 'request', Infinity)
    await w.env.advance(20)
    controller.abort()
    expect(await w.env.until(ended)).toBeInstanceOf(Error)
    expect(w.env.mono() - began).toBeLessThan(200)
    p.store.heal()
    await w.env.advance(20_000)
    expect(await isClean(w, 'a')).toBe(true)
  })
})

describe('calls', () => {
  it('of close after the first change only what they say', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const job = holdfast.mutex('x').run(() => env.sleep(30_000))
    await env.advance(10)
    const first = holdfast.close({ drain: 60_000 })
    const second = holdfast[Symbol.asyncDispose]()
    expect(await env.until(first)).toMatchObject({ cutShort: [], leftToExpire: [] })
    await env.until(Promise.all([second, job]))
    expect(env.mono()).toBeGreaterThan(29_000)
  })

  it.each([5000, null, { drian: 5 }, { drain: -1 }, { timeout: 'soon' }])(
    'of close with %j are refused',
    async (options) => {
      const holdfast = new Holdfast(memoryStore())
      await expect(holdfast.close(options as never)).rejects.toBeInstanceOf(InvalidArgumentError)
      await holdfast.close()
    },
  )

  it.each([-5, '5000', 1.5, true])('of several locks with { wait: %j } are refused', async (wait) => {
    const holdfast = new Holdfast(memoryStore())
    const call = holdfast.all(['a', 'b']).acquire({ wait: wait as never })
    await expect(call).rejects.toBeInstanceOf(InvalidArgumentError)
    await holdfast.close()
  })

  it('inside of work that outlives its section do not pile up', async () => {
    const holdfast = new Holdfast(memoryStore())
    const mutex = holdfast.mutex('x')
    let depth = 0
    const round = async (left: number): Promise<void> => {
      let next: Promise<void> | undefined
      await mutex.run(() => {
        next = new Promise((resolve) => setImmediate(resolve)).then(() => {
          depth = depthOf(sections.getStore())
          return left > 0 ? round(left - 1) : undefined
        })
      })
      await next
    }
    await round(50)
    expect(depth).toBeLessThanOrEqual(2)
    await holdfast.close()
  })

  it('to write are a re-entry inside of reading inside of writing', async () => {
    const holdfast = new Holdfast(memoryStore())
    const { read, write } = holdfast.readWriteLock('x', { reentrant: true })
    expect(await write.run(() => read.run(() => write.run(() => 'in')))).toBe('in')
    await expect(read.run(() => write.run(() => 'in'))).rejects.toMatchObject({ code: 'LOCK_REENTRY' })
    await holdfast.close()
  })
})
