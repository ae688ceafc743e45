import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { ClaimRequest } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'

const REMEMBERED_MS = 2000

export const withdrawing: readonly Case[] = [
  {
    id: 'withdraw/holder',
    title: 'a holder that is withdrawn is gone',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      assert.equal(await a.withdraw(request), 'released')
      assert.equal(await a.withdraw(request), 'not-held')
      assert.deepEqual(await a.renew(request), { kind: 'lost' })
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'withdraw/late-copy',
    title: 'a copy of a withdrawn claim that arrives late finds nothing to do',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      await a.withdraw(request)
      await refuse(a, request)
      await refuse(a, request)
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'withdraw/overtakes',
    title: 'a claim that arrives after its own withdrawal is refused',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      assert.equal(await a.withdraw(request), 'not-held')
      await refuse(a, request)
      const other = a.request(request.name)
      await a.take(other)
      await refuse(a, request)
      await a.release(other)
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'withdraw/waiter',
    title: 'a waiter that is withdrawn leaves the queue and does not come back by a late copy',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = await c.queue(c.request(first.name))
      assert.equal(await b.withdraw(second), 'released')
      await refuse(b, second)
      const { waiters } = await a.inspect(first.name)
      assert.deepEqual(
        waiters.map(({ id }) => id),
        [third.id],
      )
      await a.release(first)
      await c.granted(third)
    },
  },
  {
    id: 'withdraw/next',
    title: 'withdrawing the holder grants the next waiter',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      await a.withdraw(first)
      await b.granted(second)
    },
  },
  {
    id: 'withdraw/fused',
    title: 'a withdrawn claim does not come back as the second half of a release',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      const second = a.request(first.name)
      await a.take(first)
      await a.withdraw(second)
      const { released, next } = await a.fuse(first, second)
      assert.deepEqual([released.kind, next?.kind], ['released', 'busy'])
      await b.take(b.request(first.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'withdraw/lets-in',
    title: 'a waiter that is withdrawn lets those in whom it alone kept waiting',
    needs: ['queue', 'shared'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { weight: 1, capacity: ALL }))
      const writing = await b.queue(b.request(name, { weight: ALL, capacity: ALL }))
      const reading = await c.queue(c.request(name, { weight: 1, capacity: ALL }))
      assert.equal(await b.withdraw(writing), 'released')
      await c.granted(reading)
    },
  },
  {
    id: 'withdraw/remembered',
    title: 'a withdrawn claim is refused for longer than a network needs to deliver what was sent before',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const [held, never] = [a.request(ctx.name()), a.request(ctx.name())]
      await a.take(held)
      await a.withdraw(held)
      await a.withdraw(never)
      // A store remembers for a minute. This is as long as a test can wait, and longer than a careless one does.
      await ctx.sleep(REMEMBERED_MS)
      for (const request of [held, never]) await refuse(a, request)
    },
  },
]

async function refuse(client: Client, request: ClaimRequest): Promise<void> {
  const answer = await client.claim(request)
  assert.equal(answer.kind, 'busy', 'a withdrawn claim is refused')
  assert.deepEqual([await client.holds(request), await client.waits(request)], [false, false])
}
