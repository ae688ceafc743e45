import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { ClaimRequest } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'

const MANY = 20

export const queueing: readonly Case[] = [
  {
    id: 'queue/fifo',
    title: 'waiters are granted in the order in which they came',
    needs: ['queue'],
    async run(ctx) {
      const clients = await openClients(ctx)
      const name = ctx.name()
      const line: [Client, ClaimRequest][] = []
      for (let index = 0; index < MANY; index += 1) {
        const client = clients[index % clients.length] ?? clients[0]
        const request = client.request(name)
        if (index === 0) await client.take(request)
        else await client.queue(request)
        line.push([client, request])
      }
      for (const [index, [client, request]] of line.entries()) {
        if (index > 0) await client.granted(request)
        const { holders, waiters } = await client.inspect(name)
        assert.deepEqual(
          [...holders, ...waiters].map(({ id }) => id),
          line.slice(index).map(([, { id }]) => id),
        )
        await client.release(request)
      }
    },
  },
  {
    id: 'queue/owners',
    title: 'what a waiter calls itself, however long and in whatever letters, keeps nobody from releasing',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      for (const owner of [
        'x'.repeat(256),
        '𝄞'.repeat(256),
        '漢 "1" \\'.repeat(36),
        '\ud800',
        '1 1 1 1 1 x',
      ]) {
        const first = a.request(name)
        await a.take(first)
        const second = await b.queue(b.request(name, { owner }))
        assert.equal(await a.release(first), 'released')
        await b.granted(second)
        const [holder] = (await a.inspect(name)).holders
        // A store may cut it, and may have another sign for what is no letter.
        assert.ok(holder !== undefined && (owner.startsWith(holder.owner) || owner === '\ud800'))
        assert.equal(await b.release(second), 'released')
      }
    },
  },
  {
    id: 'queue/wakes-one',
    title: 'a release wakes exactly the next waiter',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = await c.queue(c.request(first.name))
      assert.equal(await a.release(first), 'released')
      await b.granted(second)
      assert.equal((await c.renew(third)).kind, 'queued')
      assert.deepEqual(
        c.events.filter(({ kind }) => kind === 'granted'),
        [],
      )
    },
  },
  {
    id: 'queue/repeated',
    title: 'a queued claim that is sent again keeps its one place',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = await c.queue(c.request(first.name))
      await b.queue(second)
      const { waiters } = await a.inspect(first.name)
      assert.deepEqual(
        waiters.map(({ id }) => id),
        [second.id, third.id],
      )
    },
  },
  {
    id: 'queue/leave',
    title: 'a waiter that leaves is forgotten, and those behind it move up',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = await c.queue(c.request(first.name))
      assert.equal(await b.release(second), 'released')
      assert.equal((await b.renew(second)).kind, 'lost')
      await a.release(first)
      await c.granted(third)
    },
  },
  {
    id: 'queue/contended',
    title: 'a holder hears with its renewal whether somebody waits',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      assert.equal((await a.take(first)).contended, false)
      assert.deepEqual(await a.renew(first), { kind: 'renewed', contended: false })
      const second = await b.queue(b.request(first.name))
      assert.deepEqual(await a.renew(first), { kind: 'renewed', contended: true })
      await b.release(second)
      assert.deepEqual(await a.renew(first), { kind: 'renewed', contended: false })
    },
  },
  {
    id: 'queue/fused',
    title: 'a release that queues again in the same step goes behind the others',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = await c.queue(c.request(first.name))
      const fourth = a.request(first.name)
      const { released, next } = await a.fuse(first, fourth)
      assert.deepEqual([released.kind, next?.kind], ['released', 'queued'])
      await b.granted(second)
      await b.release(second)
      await c.granted(third)
      await c.release(third)
      await a.granted(fourth)
    },
  },
  {
    id: 'queue/fused-alone',
    title: 'a release that queues again gets the name back with a new token when nobody else waits',
    needs: ['queue'],
    async run(ctx) {
      const a = await Client.open(ctx)
      const first = a.request(ctx.name())
      const { token } = await a.take(first)
      const second = a.request(first.name)
      const { released, next } = await a.fuse(first, second)
      assert.equal(released.kind, 'released')
      assert.ok(next?.kind === 'held' && next.token > token)
      assert.deepEqual([await a.holds(first), await a.holds(second)], [false, true])
    },
  },
  {
    id: 'queue/fused-lasts',
    title: 'what a release that queues again is granted at once lasts for its ttl, not for its patience',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const patience = ctx.ttl(300)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = a.request(first.name, { patience })
      const { next } = await a.fuse(first, second)
      assert.equal(next?.kind, 'held')
      await ctx.sleep(patience * 1.5)
      assert.ok(await a.holds(second))
      await b.findBusy(first.name)
    },
  },
  {
    id: 'queue/fused-repeated',
    title: 'a release that queues again may be sent twice',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      const third = a.request(first.name)
      await a.fuse(first, third)
      const { released, next } = await a.fuse(first, third)
      assert.deepEqual([released.kind, next?.kind], ['not-held', 'queued'])
      const { waiters } = await a.inspect(first.name)
      assert.deepEqual(
        waiters.map(({ id }) => id),
        [third.id],
      )
      await b.granted(second)
    },
  },
  {
    id: 'queue/fused-repeated-held',
    title: 'a release that queues again may be sent twice also when what it asked for was granted',
    needs: ['queue'],
    async run(ctx) {
      const a = await Client.open(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = a.request(first.name)
      await a.fuse(first, second)
      const { released, next } = await a.fuse(first, second)
      assert.deepEqual([released.kind, next?.kind], ['not-held', 'held'])
      const { holders, waiters } = await a.inspect(first.name)
      assert.deepEqual([holders.map(({ id }) => id), waiters], [[second.id], []])
    },
  },
  {
    id: 'queue/leave-lets-in',
    title: 'a waiter that leaves lets those in whom it alone kept waiting',
    needs: ['queue', 'shared'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { weight: 1, capacity: ALL }))
      const writing = await b.queue(b.request(name, { weight: ALL, capacity: ALL }))
      const reading = await c.queue(c.request(name, { weight: 1, capacity: ALL }))
      assert.equal(await b.release(writing), 'released')
      await c.granted(reading)
    },
  },
]
