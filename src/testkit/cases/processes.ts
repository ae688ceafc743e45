import assert from 'node:assert/strict'

import type { Lease } from '../../runtime/lease.ts'
import type { Case, CaseContext } from '../case.ts'
import { checkExclusivity } from '../checkers/exclusivity.ts'
import { checkTokenOrder } from '../checkers/token-order.ts'
import { assertNone } from '../checkers/violation.ts'
import { Recorder } from '../history.ts'
import { holdsOf } from '../holds.ts'
import { spawnTaker } from '../taker.ts'
import type { Taker, TakerOptions } from '../taker.ts'
import { assertNothingLeft, code, expected, openHoldfast, somebodyWaits } from './lock-kit.ts'

const TAKERS = 3
const ROUNDS = 10

export const processes: readonly Case[] = [
  {
    id: 'process/exclusion',
    title: 'processes never hold a lock at the same time, and their tokens grow',
    needs: ['processes'],
    async run(ctx) {
      const name = ctx.name()
      const takers = await Promise.all(Array.from({ length: TAKERS }, () => open(ctx)))
      const work = takers.map(async (taker) => {
        for (let round = 0; round < ROUNDS; round += 1) {
          await taker.acquire(name)
          await ctx.sleep(ctx.env.random() * 5)
          assert.equal(await taker.release(), 'released')
        }
      })
      await Promise.all(work)
      assert.equal(assertLawful(takers), TAKERS * ROUNDS)
    },
  },
  {
    id: 'process/killed',
    title: 'a lock whose holder was killed is free after its ttl, and not before the end of its belief',
    needs: ['processes'],
    async run(ctx) {
      const ttl = ctx.ttl(600)
      const name = ctx.name()
      const taker = await open(ctx, { ttl })
      const token = await taker.acquire(name)
      await ctx.sleep(ttl / 2)
      await taker.kill()
      const { lease, own } = await takeOver(ctx, name, ttl)
      assert.ok(lease.token > token)
      assertLawful([taker], own)
    },
  },
  {
    id: 'process/stopped',
    title: 'a holder that was stopped for longer than its ttl knows, when it goes on, that it lost the lock',
    needs: ['processes'],
    async run(ctx) {
      const ttl = ctx.ttl(600)
      const name = ctx.name()
      const taker = await open(ctx, { ttl })
      await taker.acquire(name)
      await taker.stop()
      const { lease, own } = await takeOver(ctx, name, ttl)
      taker.resume()
      const { held, aborted } = await taker.state()
      assert.deepEqual([held, aborted], [false, true])
      assert.equal(await taker.release(), 'expired')
      lease.assertHeld()
      const other = await openHoldfast(ctx)
      assert.equal(await other.mutex(name).tryAcquire(), null)
      assertLawful([taker], own)
    },
  },
  {
    id: 'process/blocked',
    title:
      'a holder whose event loop was blocked for longer than its ttl knows it with its first code after the block',
    needs: ['processes'],
    async run(ctx) {
      const ttl = ctx.ttl(600)
      const name = ctx.name()
      const taker = await open(ctx, { ttl })
      await taker.acquire(name)
      const blocked = expected(taker.block(ttl + 2 * ctx.grace))
      const { lease, own } = await takeOver(ctx, name, ttl)
      assert.equal((await blocked).held, false)
      // A lease that nobody has in hand any more is warned about.
      lease.assertHeld()
      assertLawful([taker], own)
    },
  },
  {
    id: 'process/waiter-killed',
    title: 'a waiter that was killed holds up those behind it no longer than its patience',
    needs: ['processes', 'queue'],
    async run(ctx) {
      const patience = ctx.ttl(600)
      const name = ctx.name()
      const [holder, next] = [await openHoldfast(ctx), await openHoldfast(ctx)]
      const taker = await open(ctx, { patience })
      const lease = await holder.mutex(name).acquire()
      const waiting = expected(assert.rejects(taker.acquire(name)))
      await somebodyWaits(ctx, holder, name)
      const behind = expected(next.mutex(name).acquire())
      await somebodyWaits(ctx, holder, name, 2)
      await taker.kill()
      await waiting
      await lease.release()
      const began = ctx.env.mono()
      await (await behind).release()
      assert.ok(ctx.env.mono() - began <= patience + ctx.grace)
      await assertNothingLeft(ctx, holder, name)
    },
  },
  {
    id: 'process/timeout',
    title: 'errors can be told apart in another process, too',
    needs: ['processes'],
    async run(ctx) {
      const name = ctx.name()
      const [taker, holdfast] = [await open(ctx), await openHoldfast(ctx)]
      const lease = await holdfast.mutex(name).acquire()
      await assert.rejects(taker.acquire(name, { wait: 1000 }), code('LOCK_TIMEOUT'))
      await lease.release()
      await taker.acquire(name)
    },
  },
]

async function open(ctx: CaseContext, options: TakerOptions = {}): Promise<Taker> {
  const taker = await spawnTaker(await ctx.module(), { ttl: ctx.ttl(5000), ...options })
  ctx.cleanup(() => taker.close())
  return taker
}

/** Waits for a lock whose holder is out of action, and writes it down: it must come, but not much later than the ttl. */
async function takeOver(
  ctx: CaseContext,
  name: string,
  ttl: number,
): Promise<{ lease: Lease; own: Recorder }> {
  const own = new Recorder('own')
  const holdfast = await openHoldfast(ctx, { patience: ctx.ttl(900) })
  const story = own.acquire(name)
  const lease = await holdfast.mutex(name).acquire({ wait: ttl + 2 * ctx.grace })
  story.acquired(lease)
  return { lease, own }
}

function assertLawful(takers: readonly Taker[], own?: Recorder): number {
  const holds = holdsOf([...takers.flatMap((taker) => taker.events()), ...(own?.events ?? [])])
  assertNone([...checkExclusivity(holds), ...checkTokenOrder(holds)])
  return holds.length
}
