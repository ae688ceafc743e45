import assert from 'node:assert/strict'

import type { Case } from '../case.ts'
import { assertNothingLeft, code, expected, inspect, openHoldfast, openHoldfasts } from './lock-kit.ts'

const ROUNDS = 8

export const composing: readonly Case[] = [
  {
    id: 'run/result',
    title: 'run gives back what the function returned or threw, and releases in both cases',
    needs: [],
    async run(ctx) {
      const a = await openHoldfast(ctx)
      const name = ctx.name()
      assert.equal(await a.mutex(name).run(() => 42), 42)
      await assertNothingLeft(ctx, a, name)
      const failure = new Error('of the function')
      await assert.rejects(
        a.mutex(name).run(() => Promise.reject(failure)),
        (error) => error === failure,
      )
      await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'run/reentrant',
    title:
      'a re-entrant lock may be taken again inside its own run, with the same token, and is free after the last exit',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lock = a.mutex(name, { reentrant: true })
      await lock.run(async (outer) => {
        await lock.run(async (inner) => {
          assert.equal(inner.token, outer.token)
          inner.assertHeld()
        })
        outer.assertHeld()
        assert.equal(await b.mutex(name).tryAcquire(), null)
      })
      await assertNothingLeft(ctx, b, name)
    },
  },
  {
    id: 'run/reentry',
    title: 'a lock that is not re-entrant refuses its own run instead of waiting for itself',
    needs: [],
    async run(ctx) {
      const a = await openHoldfast(ctx)
      const lock = a.mutex(ctx.name())
      await lock.run(async (lease) => {
        await assert.rejects(lock.acquire(), code('LOCK_REENTRY'))
        lease.assertHeld()
      })
    },
  },
  {
    id: 'all/or-none',
    title: 'several locks are taken all or none',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const names = [ctx.name('c'), ctx.name('a'), ctx.name('b')] as const
      const [first, second, third] = names
      const taken = await b.mutex(second).acquire()
      assert.equal(await a.all(names).tryAcquire(), null)
      await assert.rejects(a.all(names).acquire({ wait: 500 }), code('LOCK_TIMEOUT'))
      await assertNothingLeft(ctx, a, first)
      await assertNothingLeft(ctx, a, third)
      await taken.release()
      const set = await a.all(names).acquire()
      assert.deepEqual(
        set.leases.map(({ name }) => name),
        [...names].sort(),
      )
      set.assertHeld()
      for (const name of names) assert.equal(await b.mutex(name).tryAcquire(), null)
      assert.equal(await set.release(), 'released')
      for (const name of names) await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'all/any-order',
    title: 'processes that name the same locks in opposite orders never wait for each other for ever',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx, { wait: 60_000 })
      const names = [ctx.name(), ctx.name()]
      let running = 0
      const rounds = Array.from({ length: 20 }, (_, round) => {
        const [holdfast, order] = round % 2 === 0 ? [a, names] : [b, names.toReversed()]
        return holdfast.all(order).run(async () => {
          running += 1
          assert.equal(running, 1)
          await ctx.sleep(1)
          running -= 1
        })
      })
      await Promise.all(rounds)
    },
  },
  {
    id: 'close/waiters',
    title: 'closing turns waiters away, waits for those that hold, and leaves nothing behind',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const [held, wanted] = [ctx.name(), ctx.name()]
      const other = await b.mutex(wanted).acquire()
      const lease = await a.mutex(held).acquire()
      const { signal } = lease
      const turnedAway = expected(assert.rejects(a.mutex(wanted).acquire(), code('CLOSED')))
      const closing = a.close({ drain: ctx.ttl(5000) })
      await turnedAway
      assert.deepEqual([lease.held, signal.aborted], [true, true])
      const before = await inspect(b, held)
      assert.equal(before.holders.length, 1, 'what is held stays held until its owner is done')
      await lease.release()
      assert.deepEqual(await closing, { cutShort: [], leftToExpire: [] })
      assert.equal(lease.held, false)
      await assert.rejects(a.mutex(held).acquire(), code('CLOSED'))
      await assertNothingLeft(ctx, b, held)
      other.assertHeld()
      await other.release()
      await assertNothingLeft(ctx, b, wanted)
    },
  },
  {
    id: 'close/drained',
    title: 'closing takes away what is still held when the drain is over',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      const { cutShort, leftToExpire } = await a.close({ drain: 20 })
      assert.deepEqual([cutShort, leftToExpire], [[name], []])
      assert.deepEqual([lease.held, lease.signal.aborted], [false, true])
      await assertNothingLeft(ctx, b, name)
    },
  },
  {
    id: 'close/left',
    title:
      "a lock that is left to run out when its client is closed, with its store, is nobody else's before that",
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(1000)
      const [a, b] = await openHoldfasts(ctx, { ttl, closeStore: true })
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      await a.close({ drain: 0, release: false })
      const next = await b.mutex(name).acquire({ wait: 10 * ttl + ctx.grace })
      assert.equal(lease.held, false, 'the lease says that it is held, and somebody else holds the lock')
      await next.release()
    },
  },
  {
    id: 'close/in-flight',
    title: 'closing waits until nothing that was asked for can turn up at the store any more',
    needs: [],
    async run(ctx) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const [a, b] = await openHoldfasts(ctx)
        const name = ctx.name()
        const asked = expected(a.mutex(name).acquire())
        if (round > 0) await ctx.sleep(round)
        await a.close({ drain: 0 })
        await asked.catch(() => undefined)
        const { holders, waiters } = await inspect(b, name)
        assert.deepEqual([holders, waiters], [[], []])
      }
    },
  },
  {
    id: 'unsupported/shared',
    title: 'a store without readers refuses a read-write lock at once, and names a store that has them',
    needs: ['no shared'],
    async run(ctx) {
      const a = await openHoldfast(ctx)
      assert.throws(() => a.readWriteLock(ctx.name()), { ...code('UNSUPPORTED'), message: /redis|memory/ })
    },
  },
  {
    id: 'unsupported/permits',
    title: 'a store without permits refuses a semaphore at once, and names a store that has them',
    needs: ['no permits'],
    async run(ctx) {
      const a = await openHoldfast(ctx)
      assert.throws(() => a.semaphore(ctx.name(), 3), { ...code('UNSUPPORTED'), message: /redis|memory/ })
    },
  },
]
