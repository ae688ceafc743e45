import assert from 'node:assert/strict'

import { LockLostError } from '../../core/errors.ts'
import type { Case } from '../case.ts'
import { assertNothingLeft, code, inspect, openHoldfast, openHoldfasts, settableWall } from './lock-kit.ts'

const HOUR_MS = 3_600_000

export const leasing: readonly Case[] = [
  {
    id: 'lease/renewed',
    title: 'a lease is kept for as long as it is wanted, with one token',
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(900)
      const [a, b] = await openHoldfasts(ctx, { ttl })
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      const { token } = lease
      await ctx.sleep(ttl * 2.5)
      lease.assertHeld()
      assert.ok(lease.remaining() > 0 && lease.remaining() <= ttl)
      assert.equal(lease.token, token)
      assert.equal(await b.mutex(name).tryAcquire(), null)
      assert.equal(await lease.release(), 'released')
      await assertNothingLeft(ctx, a, name)
    },
  },
  {
    id: 'lease/released',
    title: 'a lease that was released is held no more; a second release says the same and harms nobody',
    needs: [],
    async run(ctx) {
      const [a, b] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lease = await a.mutex(name).acquire()
      const { signal } = lease
      assert.equal(await lease.release(), 'released')
      assert.deepEqual([lease.held, lease.remaining(), signal.aborted], [false, 0, false])
      assert.throws(() => lease.assertHeld(), code('LOCK_LOST'))
      const next = await b.mutex(name).acquire()
      assert.equal(await lease.release(), 'released')
      next.assertHeld()
      assert.equal((await inspect(b, name)).holders.length, 1)
    },
  },
  {
    id: 'lease/lost',
    title: 'a lease that runs out says so before anybody else gets the lock',
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(400)
      // Who asks often notices at once when the store forgets too early.
      const [a, b] = await openHoldfasts(ctx, { patience: ttl })
      const name = ctx.name()
      const lease = await a.mutex(name, { ttl, renew: false }).acquire()
      const { signal } = lease
      const next = await b.mutex(name).acquire({ wait: ttl + 10 * ctx.grace })
      assert.equal(lease.held, false)
      assert.ok(signal.aborted && signal.reason instanceof LockLostError)
      assert.throws(() => lease.assertHeld(), code('LOCK_LOST'))
      assert.equal(lease.remaining(), 0)
      assert.ok(next.token > lease.token)
      assert.equal(await lease.release(), 'expired')
      next.assertHeld()
      assert.equal(await a.mutex(name).tryAcquire(), null)
    },
  },
  {
    id: 'lease/signal',
    title: 'the signal of a lease aborts when its time is up, without any answer from the store',
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(300)
      const a = await openHoldfast(ctx)
      const began = ctx.env.mono()
      const lease = await a.mutex(ctx.name(), { ttl, renew: false }).acquire()
      const { signal } = lease
      await ctx.eventually('the signal aborts', () => signal.aborted, ttl + ctx.grace)
      assert.ok(ctx.env.mono() - began >= ttl / 2 - ctx.capabilities.earlyExpiry, 'not long before its time')
    },
  },
  {
    id: 'lease/taken-away',
    title: 'a holder whose claim vanished from the store learns it with its next renewal',
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(900)
      const [a, b] = await openHoldfasts(ctx, { ttl })
      const name = ctx.name()
      const work = a.mutex(name).run(async (lease) => {
        const { holders } = await inspect(b, name)
        for (const { id } of holders) await b.store.release({ name, id }, undefined, 5000)
        await ctx.eventually('the holder is told', () => lease.signal.aborted, ttl + ctx.grace)
        return 'finished anyway'
      })
      await assert.rejects(work, (error: unknown) => {
        assert.ok(error instanceof LockLostError)
        assert.deepEqual(error.outcome, { status: 'fulfilled', value: 'finished anyway' })
        return true
      })
      await assertNothingLeft(ctx, b, name)
    },
  },
  {
    id: 'lease/wall-forward',
    title: 'a wall clock that is put forward past the end of a lease costs the lease',
    needs: [],
    async run(ctx) {
      const wall = settableWall(ctx.env)
      const a = await openHoldfast(ctx, { env: wall.env })
      const lease = await a.mutex(ctx.name()).acquire()
      lease.assertHeld()
      wall.set(HOUR_MS)
      assert.equal(lease.held, false)
      assert.throws(() => lease.assertHeld(), code('LOCK_LOST'))
    },
  },
  {
    id: 'lease/wall-back',
    title: 'a wall clock that is put back does not make a lease last longer',
    needs: [],
    async run(ctx) {
      const ttl = ctx.ttl(300)
      const wall = settableWall(ctx.env)
      const a = await openHoldfast(ctx, { env: wall.env })
      const lease = await a.mutex(ctx.name(), { ttl, renew: false }).acquire()
      wall.set(-HOUR_MS)
      lease.assertHeld()
      await ctx.sleep(ttl)
      assert.equal(lease.held, false)
    },
  },
]
