import assert from 'node:assert/strict'

import { Holdfast } from '../../locks/holdfast.ts'
import type { HoldfastOptions } from '../../locks/options.ts'
import type { Case, CaseContext } from '../case.ts'
import type { FaultProxy } from '../fault-proxy.ts'
import { Client } from './client.ts'
import { assertNothingLeft, code, expected, openHoldfast, somebodyWaits } from './lock-kit.ts'

const naming =
  (name: string) =>
  (chunk: Buffer): boolean =>
    chunk.includes(name)

export const connections: readonly Case[] = [
  {
    id: 'connection/claim-cut',
    title: 'a claim whose reply was cut off is unknown, and may be sent again: it is granted once',
    needs: ['proxy'],
    async run(ctx) {
      const { store, proxy } = await ctx.createProxied()
      const a = await Client.open(ctx, store)
      const b = await Client.open(ctx)
      const request = a.request(ctx.name())
      const cut = proxy.cutReply({ match: naming(request.name) })
      assert.equal((await a.claim(request)).kind, 'unknown')
      await cut
      assert.ok(await b.holds(request), 'the request got through')
      const { token } = await ctx.eventually('the store answers again', async () => {
        const answer = await a.claim(request)
        return answer.kind === 'held' ? answer : undefined
      })
      const { holders } = await b.inspect(request.name)
      assert.deepEqual(
        holders.map((holder) => [holder.id, holder.token]),
        [[request.id, token]],
      )
      assert.equal(await a.release(request), 'released')
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'connection/half-open',
    title: 'a request on a connection that swallows everything is unknown when its time is up',
    needs: ['proxy'],
    async run(ctx) {
      const { store, proxy } = await ctx.createProxied()
      const a = await Client.open(ctx, store)
      await a.take(a.request(ctx.name()))
      swallow(proxy)
      const began = ctx.env.mono()
      const answer = await store.claim(a.request(ctx.name()), 300)
      assert.equal(answer.kind, 'unknown')
      assert.ok(ctx.env.mono() - began <= 300 + ctx.grace)
    },
  },
  {
    id: 'connection/acquire-cut',
    title: 'an acquire whose reply was cut off has the lock once, and its release leaves nothing',
    needs: ['proxy'],
    async run(ctx) {
      const { holdfast, proxy } = await openProxied(ctx)
      const direct = await openHoldfast(ctx)
      const name = ctx.name()
      const cut = proxy.cutReply({ match: naming(name) })
      const lease = await holdfast.mutex(name).acquire()
      await cut
      lease.assertHeld()
      assert.equal((await direct.inspect(name)).holders.length, 1)
      await lease.release()
      await assertNothingLeft(ctx, direct, name)
    },
  },
  {
    id: 'connection/release-cut',
    title: 'a release whose reply was cut off is done in the end',
    needs: ['proxy'],
    async run(ctx) {
      const { holdfast, proxy } = await openProxied(ctx)
      const direct = await openHoldfast(ctx)
      const name = ctx.name()
      const lease = await holdfast.mutex(name).acquire()
      const cut = proxy.cutReply({ match: naming(name) })
      assert.notEqual(await lease.release(), 'expired')
      await cut
      await assertNothingLeft(ctx, direct, name)
    },
  },
  {
    id: 'connection/partition',
    title: 'a holder behind a dead connection knows that it lost the lock before somebody else gets it',
    needs: ['proxy'],
    async run(ctx) {
      const ttl = ctx.ttl(900)
      const { holdfast, proxy } = await openProxied(ctx, { ttl, requestTimeout: 500 })
      const direct = await openHoldfast(ctx, { patience: ctx.ttl(900) })
      const name = ctx.name()
      const lease = await holdfast.mutex(name).acquire()
      const { signal } = lease
      swallow(proxy)
      const next = await direct.mutex(name).acquire({ wait: ttl + 2 * ctx.grace })
      assert.deepEqual([lease.held, signal.aborted], [false, true])
      assert.ok(next.token > lease.token)
      proxy.heal()
      await next.release()
      await ctx.eventually(
        'the lock can be had again',
        async () => {
          const again = await holdfast
            .mutex(name)
            .acquire({ wait: 1000 })
            .catch(() => undefined)
          await again?.release()
          return again !== undefined
        },
        20_000,
      )
    },
  },
  {
    id: 'connection/late-reply',
    title: 'a grant that arrives after its lease has ended is not given out, and is cleaned up',
    needs: ['proxy'],
    async run(ctx) {
      const ttl = ctx.ttl(300)
      const { holdfast, proxy } = await openProxied(ctx, { ttl })
      const direct = await openHoldfast(ctx)
      const name = ctx.name()
      await (await holdfast.mutex(ctx.name()).acquire()).release()
      proxy.set('replies', { latency: ttl + 100 })
      const late = await holdfast
        .mutex(name, { renew: false })
        .acquire({ wait: ttl + 50 })
        .catch(() => undefined)
      assert.equal(late, undefined)
      proxy.heal()
      await ctx.eventually(
        'the name is free',
        async () => (await direct.inspect(name)).holders.length === 0,
        ttl * 10,
      )
      await assertNothingLeft(ctx, direct, name)
    },
  },
  {
    id: 'connection/waiter-reset',
    title: 'a waiter whose connection was reset still gets the lock',
    needs: ['proxy'],
    async run(ctx) {
      const patience = ctx.ttl(900)
      const { holdfast, proxy } = await openProxied(ctx, { patience })
      const direct = await openHoldfast(ctx)
      const name = ctx.name()
      const lease = await direct.mutex(name).acquire()
      const waiting = expected(holdfast.mutex(name).acquire({ wait: 30_000 }))
      await somebodyWaits(ctx, direct, name)
      proxy.reset()
      await lease.release()
      const began = ctx.env.mono()
      await (await waiting).release()
      assert.ok(ctx.env.mono() - began <= 2 * patience + ctx.grace)
      await assertNothingLeft(ctx, direct, name)
    },
  },
  {
    id: 'connection/down',
    title: 'a store that cannot be reached is told apart from a lock that is busy',
    needs: ['proxy'],
    async run(ctx) {
      const { holdfast, proxy } = await openProxied(ctx, { requestTimeout: 500 })
      const name = ctx.name()
      await (await holdfast.mutex(name).acquire()).release()
      await proxy.refuse()
      proxy.reset()
      await assert.rejects(holdfast.mutex(name).tryAcquire(), code('STORE_UNAVAILABLE'))
      await assert.rejects(holdfast.mutex(name).acquire({ wait: 300 }), code('STORE_UNAVAILABLE'))
      await proxy.accept()
      const lease = await holdfast.mutex(name).acquire({ wait: 20_000 })
      lease.assertHeld()
      await lease.release()
    },
  },
  {
    id: 'restart/usable',
    title: 'locks work again after the server was restarted, and tokens still grow',
    needs: ['restart', 'monotonic tokens'],
    async run(ctx) {
      const holdfast = await openHoldfast(ctx, { requestTimeout: 1000 })
      const lock = holdfast.mutex(ctx.name())
      const before = await lock.acquire()
      await before.release()
      await ctx.restart()
      const after = await lock.acquire({ wait: 30_000 })
      assert.ok(after.token > before.token)
      await after.release()
    },
  },
]

async function openProxied(
  ctx: CaseContext,
  options: HoldfastOptions = {},
): Promise<{ readonly holdfast: Holdfast; readonly proxy: FaultProxy }> {
  const { store, proxy } = await ctx.createProxied()
  const holdfast = new Holdfast(store, { env: ctx.env, ttl: ctx.ttl(5000), ...options })
  ctx.cleanup(() => {
    proxy.heal()
    return holdfast.close({ drain: 0 })
  })
  return { holdfast, proxy }
}

function swallow(proxy: FaultProxy): void {
  proxy.set('requests', { blackhole: true })
  proxy.set('replies', { blackhole: true })
}
