import assert from 'node:assert/strict'

import type { ClaimRequest, Held } from '../../core/contract.ts'
import { validUntil } from '../../core/validity.ts'
import type { Case, CaseContext } from '../case.ts'
import { openClients } from './client.ts'
import type { Client } from './client.ts'

export const expiry: readonly Case[] = [
  {
    id: 'expiry/frees',
    title: 'a holder that says nothing keeps the name for its ttl, and not much longer',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(300)
      const name = ctx.name()
      const sentAt = ctx.env.mono()
      await a.take(a.request(name, { ttl }))
      await ctx.eventually(
        'the name is free',
        async () => (await b.claim(b.request(name, { whenBusy: 'try' }))).kind === 'held',
        ttl + ctx.grace,
      )
      assertNotEarly(ctx, sentAt, ttl)
    },
  },
  {
    id: 'expiry/own-ttl',
    title: 'each holder runs out by its own ttl',
    needs: ['permits'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      const long = a.request(name, { capacity: 2 })
      const short = b.request(name, { capacity: 2, ttl: ctx.ttl(100) })
      await a.take(long)
      await b.take(short)
      await ctx.eventually('one place is free', async () => !(await b.holds(short)), short.ttl + ctx.grace)
      await c.take(c.request(name, { capacity: 2 }))
      assert.ok(await a.holds(long))
      await c.findBusy(name, { capacity: 2 })
    },
  },
  {
    id: 'expiry/waiter',
    title: 'a waiter gets the name when the holder runs out, not before, although nobody releases',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(300)
      const name = ctx.name()
      const sentAt = ctx.env.mono()
      const first = await a.take(a.request(name, { ttl }))
      const waiting = await b.queue(b.request(name))
      const held = await asks(ctx, b, waiting, ttl + ctx.grace)
      assertNotEarly(ctx, sentAt, ttl)
      assert.ok(held.token > first.token)
    },
  },
  {
    id: 'expiry/silent-waiter',
    title: 'a waiter that is silent for longer than its patience is dropped, and those behind it move up',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const patience = ctx.ttl(100)
      const first = a.request(ctx.name())
      await a.take(first)
      const silent = await b.queue(b.request(first.name, { patience }))
      const third = await c.queue(c.request(first.name))
      await ctx.sleep(patience)
      await ctx.eventually('the silent waiter is forgotten', async () => !(await a.waits(silent)))
      await a.release(first)
      await c.granted(third)
      assert.deepEqual(await b.renew(silent), { kind: 'lost' })
    },
  },
  {
    id: 'expiry/patient-waiter',
    title: 'a waiter that renews is kept beyond its patience',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const patience = ctx.ttl(1000)
      const first = a.request(ctx.name())
      await a.take(first)
      const waiting = await b.queue(b.request(first.name, { patience }))
      for (let renewal = 0; renewal < 5; renewal += 1) {
        await ctx.sleep(patience * 0.3)
        assert.equal((await b.renew(waiting)).kind, 'queued')
      }
      await a.release(first)
      await b.granted(waiting)
    },
  },
  {
    id: 'expiry/not-picked-up',
    title: 'a grant that its waiter does not pick up lasts for its patience, and goes to the next one',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const patience = ctx.ttl(300)
      const first = a.request(ctx.name())
      await a.take(first)
      const silent = await b.queue(b.request(first.name, { patience }))
      const third = await c.queue(c.request(first.name))
      await a.release(first)
      await asks(ctx, c, third, patience + ctx.grace)
      assert.deepEqual(await b.renew(silent), { kind: 'lost' })
    },
  },
  {
    id: 'expiry/picked-up',
    title: 'a grant that its waiter picks up lasts for its ttl',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const patience = ctx.ttl(300)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name, { patience }))
      await a.release(first)
      await b.granted(second)
      await ctx.sleep(patience * 1.5)
      assert.ok(await b.holds(second))
      await c.findBusy(first.name)
    },
  },
  {
    id: 'expiry/asked-for',
    title: 'a grant that its waiter asked for, behind a holder that ran out, lasts for its ttl',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const patience = ctx.ttl(600)
      const first = a.request(ctx.name(), { ttl: ctx.ttl(200) })
      await a.take(first)
      const second = await b.queue(b.request(first.name, { patience }))
      await asks(ctx, b, second, first.ttl + ctx.grace)
      await ctx.sleep(patience * 1.5)
      assert.ok(await b.holds(second))
      await c.findBusy(first.name)
    },
  },
]

/** Asks for a queued claim as a waiter does whose messages got lost. */
async function asks(ctx: CaseContext, client: Client, request: ClaimRequest, within: number): Promise<Held> {
  return ctx.eventually(
    'a waiter that asks is granted',
    async () => {
      const answer = await client.renew(request, { tokens: 1 })
      return answer.kind === 'held' ? answer : undefined
    },
    within,
  )
}

/** Whoever believed in a grant until the end of its validity was right. */
function assertNotEarly(ctx: CaseContext, sentAt: number, ttl: number): void {
  const end = validUntil(sentAt, ttl, ctx.capabilities.earlyExpiry)
  assert.ok(ctx.env.mono() >= end, `forgotten ${Math.round(end - ctx.env.mono())} ms too early`)
}
