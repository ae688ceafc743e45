import assert from 'node:assert/strict'

import type { Case } from '../case.ts'
import { assertNothingLeft, code, expected, openHoldfasts, somebodyWaits } from './lock-kit.ts'

const ROUNDS = 20

export const cancelling: readonly Case[] = [
  {
    id: 'cancel/before',
    title: 'an acquire whose signal is aborted already rejects and asks nothing of the store',
    needs: [],
    async run(ctx) {
      const [a] = await openHoldfasts(ctx)
      const name = ctx.name()
      const reason = new Error('not wanted')
      const aborted = AbortSignal.abort(reason)
      await assert.rejects(a.mutex(name).acquire({ signal: aborted }), {
        ...code('LOCK_ABORTED'),
        cause: reason,
      })
      await assert.rejects(a.mutex(name).tryAcquire({ signal: aborted }), code('LOCK_ABORTED'))
      await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'cancel/waiting',
    title: 'an acquire that is aborted while it waits leaves the queue, and those behind it move up',
    needs: [],
    async run(ctx) {
      const [a, b, c] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      const controller = new AbortController()
      const second = expected(b.mutex(name).acquire({ signal: controller.signal }))
      await somebodyWaits(ctx, a, name)
      const third = expected(c.mutex(name).acquire())
      await somebodyWaits(ctx, a, name, 2)
      controller.abort()
      await assert.rejects(second, code('LOCK_ABORTED'))
      await somebodyWaits(ctx, a, name, 1)
      assert.equal(await lease.release(), 'released')
      await (await third).release()
      await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'cancel/just-granted',
    title:
      'an acquire that is aborted in the moment of its grant either has the lock or leaves nothing behind',
    needs: [],
    async run(ctx) {
      const [a, b, c] = await openHoldfasts(ctx)
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = ctx.name()
        const lease = await a.mutex(name).acquire()
        const controller = new AbortController()
        const waiting = b
          .mutex(name)
          .acquire({ signal: controller.signal })
          .catch(() => undefined)
        await somebodyWaits(ctx, a, name)
        const released = lease.release()
        if (round % 4 > 0) await ctx.sleep(round % 4)
        controller.abort()
        await released
        await (await waiting)?.release()
        const next = await c.mutex(name).acquire({ wait: ctx.grace })
        await next.release()
        await assertNothingLeft(ctx, a, name)
      }
    },
  },
  {
    id: 'cancel/in-flight',
    title: 'an acquire that is aborted while its first request is under way leaves nothing behind',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = ctx.name()
        const controller = new AbortController()
        const asked = a
          .mutex(name)
          .acquire({ signal: controller.signal })
          .catch(() => undefined)
        for (let tick = 0; tick < round; tick += 1) await Promise.resolve()
        controller.abort()
        await (await asked)?.release()
        // The request may still arrive; what it makes is removed again.
        const next = await b.mutex(name).acquire({ wait: ctx.grace })
        await next.release()
        // Also after that, on a connection that is slower than the other's.
        await ctx.eventually('nothing is left', async () => {
          const { holders, waiters } = await a.inspect(name)
          return holders.length + waiters.length === 0
        })
      }
    },
  },
  {
    id: 'cancel/timeout',
    title: 'an acquire that waited in vain says so and leaves nothing behind',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      const began = ctx.env.mono()
      await assert.rejects(b.mutex(name).acquire({ wait: 1000 }), { ...code('LOCK_TIMEOUT'), lock: name })
      const waited = ctx.env.mono() - began
      assert.ok(waited >= 999 && waited <= 1000 + ctx.grace, `waited ${waited} ms`)
      await ctx.eventually('the waiter is gone', async () => (await b.inspect(name)).waiters.length === 0)
      assert.ok(lease.held)
      await lease.release()
      await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'cancel/no-wait',
    title: 'an acquire that must not wait, and a try, come back at once',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      await assert.rejects(b.mutex(name).acquire({ wait: 0 }), code('LOCK_TIMEOUT'))
      assert.equal(await b.mutex(name).tryAcquire(), null)
      assert.equal((await b.inspect(name)).waiters.length, 0)
      await lease.release()
      const next = await b.mutex(name).acquire({ wait: 0 })
      await next.release()
      await assertNothingLeft(ctx, a, name)
    },
  },
]
