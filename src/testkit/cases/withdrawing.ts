import assert from 'node:assert/strict'

import type { ClaimRequest } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { openClients } from './client.ts'
import type { Client } from './client.ts'

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
]

async function refuse(client: Client, request: ClaimRequest): Promise<void> {
  const answer = await client.claim(request)
  assert.equal(answer.kind, 'busy', 'a withdrawn claim is refused')
  assert.deepEqual([await client.holds(request), await client.waits(request)], [false, false])
}
