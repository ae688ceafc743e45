import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'
import { code, expected, inspect, openHoldfast, openHoldfasts, somebodyWaits } from './lock-kit.ts'
import { runOut } from './renewing.ts'

const reader = { weight: 1, capacity: ALL }
const writer = { weight: ALL, capacity: ALL }

export const downgrading: readonly Case[] = [
  {
    id: 'downgrade/readers',
    title: 'a writer that becomes a reader lets readers in and keeps writers out, until it is released',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name(), writer)
      await a.take(first)
      await b.findBusy(first.name, reader)
      assert.equal(await a.downgrade(first), 'downgraded')
      const second = b.request(first.name, reader)
      await b.take(second)
      await c.findBusy(first.name, writer)
      assert.equal(await b.release(second), 'released')
      await c.findBusy(first.name, writer)
      assert.equal(await a.release(first), 'released')
      await c.take(c.request(first.name, { ...writer, whenBusy: 'try' }))
    },
  },
  {
    id: 'downgrade/queue',
    title:
      'a downgrade lets in the readers at the head of the queue, and nobody overtakes the writer behind them',
    needs: ['downgrade', 'queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const first = a.request(ctx.name(), writer)
      await a.take(first)
      const second = await b.queue(b.request(first.name, reader))
      const next = await c.queue(c.request(first.name, writer))
      const last = await d.queue(d.request(first.name, reader))
      assert.equal(await a.downgrade(first), 'downgraded')
      await b.granted(second)
      await d.findBusy(first.name, reader)
      assert.equal((await c.renew(next)).kind, 'queued')
      assert.equal((await d.renew(last)).kind, 'queued')
      await b.release(second)
      assert.equal((await c.renew(next)).kind, 'queued')
      await a.release(first)
      await c.granted(next)
      assert.equal((await d.renew(last)).kind, 'queued')
      await c.release(next)
      await d.granted(last)
    },
  },
  {
    id: 'downgrade/token',
    title: 'a downgraded claim keeps its id and its token, weighs 1, and the next writer has a larger token',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name(), writer)
      const { token } = await a.take(request)
      await a.downgrade(request)
      for (const client of [a, b]) {
        const { holders, capacity } = await client.inspect(request.name)
        assert.deepEqual(
          holders.map((holder) => [holder.id, holder.token, holder.weight]),
          [[request.id, token, 1]],
        )
        assert.equal(capacity, ALL)
      }
      await a.release(request)
      assert.ok((await b.take(b.request(request.name, writer))).token > token)
    },
  },
  {
    id: 'downgrade/repeated',
    title: 'a downgrade that is sent again says the same, and changes nothing',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const request = a.request(ctx.name(), writer)
      await a.take(request)
      assert.deepEqual(await Promise.all([a.downgrade(request), a.downgrade(request)]), [
        'downgraded',
        'downgraded',
      ])
      const beside = b.request(request.name, reader)
      await b.take(beside)
      assert.equal(await a.downgrade(request), 'downgraded')
      assert.deepEqual([await a.holds(request), await b.holds(beside)], [true, true])
      await c.findBusy(request.name, writer)
      await b.release(beside)
      await c.findBusy(request.name, writer)
    },
  },
  {
    id: 'downgrade/not-held',
    title: 'a downgrade of what is not held is lost, and harms nobody',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const request = a.request(ctx.name(), writer)
      assert.equal(await a.downgrade(request), 'lost')
      await a.take(request)
      assert.equal(await b.downgrade(b.request(request.name, writer)), 'lost')
      await c.findBusy(request.name, reader)
      await a.release(request)
      assert.equal(await a.downgrade(request), 'lost')
      await b.take(b.request(request.name, writer))
      assert.equal(await a.downgrade(request), 'lost')
      await c.findBusy(request.name, reader)
    },
  },
  {
    id: 'downgrade/waiter',
    title: 'a downgrade of a claim that still waits is lost, and leaves it its place and its weight',
    needs: ['downgrade', 'queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const request = a.request(ctx.name(), writer)
      await a.take(request)
      const waiting = await b.queue(b.request(request.name, writer))
      assert.equal(await b.downgrade(waiting), 'lost')
      await a.release(request)
      await b.granted(waiting)
      await c.findBusy(request.name, reader)
    },
  },
  {
    id: 'downgrade/renewed',
    title: 'a downgraded claim can be renewed beyond its ttl, and gets further tokens',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(1000)
      const request = a.request(ctx.name(), { ...writer, ttl })
      const { token } = await a.take(request)
      await a.downgrade(request)
      for (let renewal = 0; renewal < 5; renewal += 1) {
        await ctx.sleep(ttl * 0.3)
        assert.equal((await a.renew(request)).kind, 'renewed')
      }
      const more = await a.renew(request, { tokens: 2 })
      assert.ok(more.kind === 'held' && more.token > token)
      assert.equal(await a.downgrade(request), 'downgraded')
      await b.findBusy(request.name, writer)
    },
  },
  {
    id: 'downgrade/expiry',
    title: 'a downgrade does not prolong the lease: it runs out as it would have, and a late one is lost',
    needs: ['downgrade'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(600)
      const request = a.request(ctx.name(), { ...writer, ttl })
      await a.take(request)
      await ctx.sleep(ttl * 0.7)
      await a.downgrade(request)
      const { holders } = await b.inspect(request.name)
      // Other processes of some stores are told no more than the ttl.
      assert.ok(holders.every(({ expiresIn }) => expiresIn <= ttl))
      const began = ctx.env.mono()
      await runOut(ctx, b, { ...request, ttl: 0 })
      assert.ok(ctx.env.mono() - began <= ttl * 0.3 + ctx.grace)
      assert.equal(await a.downgrade(request), 'lost')
      await b.take(b.request(request.name, { ...writer, whenBusy: 'try' }))
    },
  },
]

export const downgradingFaults: readonly Case[] = [
  {
    id: 'downgrade/cut',
    title: 'a downgrade whose reply was cut off may be sent again: it has happened once',
    needs: ['downgrade', 'proxy'],
    async run(ctx) {
      const { store, proxy } = await ctx.createProxied()
      const a = await Client.open(ctx, store)
      const [b, c] = await openClients(ctx)
      const request = a.request(ctx.name(), writer)
      const { token } = await a.take(request)
      const cut = proxy.cutReply({ match: (chunk) => chunk.includes(request.name) })
      assert.notEqual(await a.downgrade(request), 'lost')
      await cut
      await ctx.eventually('the store answers again', async () => {
        const answer = await a.downgrade(request)
        assert.notEqual(answer, 'lost')
        return answer === 'downgraded'
      })
      const beside = b.request(request.name, reader)
      await b.take(beside)
      await b.release(beside)
      await c.findBusy(request.name, writer)
      const { holders } = await c.inspect(request.name)
      assert.deepEqual(
        holders.map((holder) => [holder.id, holder.token]),
        [[request.id, token]],
      )
      assert.equal(await a.release(request), 'released')
      await c.take(c.request(request.name, { ...writer, whenBusy: 'try' }))
    },
  },
]

export const downgradingLocks: readonly Case[] = [
  {
    id: 'lock/downgrade',
    title: 'a downgraded lease is the same lease: readers come in beside it, a writer waits for its release',
    needs: ['downgrade', 'queue'],
    async run(ctx) {
      const [a, b, c] = await openHoldfasts(ctx)
      const name = ctx.name()
      const lock = a.readWriteLock(name)
      const lease = await lock.write.acquire()
      const { token, signal } = lease
      const reading = expected(b.readWriteLock(name).read.acquire())
      await somebodyWaits(ctx, c, name)
      let written = false
      const writing = expected(c.readWriteLock(name).write.acquire())
      const seen = expected(writing.then(() => void (written = true)))
      await somebodyWaits(ctx, c, name, 2)
      await lock.downgrade(lease)
      await lock.downgrade(lease)
      const beside = await reading
      assert.deepEqual([lease.held, lease.token, lease.signal], [true, token, signal])
      await beside.release()
      await ctx.sleep(20)
      assert.equal(written, false)
      assert.equal((await inspect(c, name)).holders.length, 1)
      assert.equal(await lease.release(), 'released')
      const next = await writing
      await seen
      assert.ok(next.token > token)
      await assert.rejects(lock.downgrade(lease), code('LOCK_LOST'))
      await next.release()
    },
  },
  {
    id: 'unsupported/downgrade',
    title: 'a store that cannot turn a writer into a reader refuses it, and the writer stays one',
    needs: ['no downgrade', 'shared'],
    async run(ctx) {
      const [a, b] = [await openHoldfast(ctx), await openHoldfast(ctx)]
      const lock = a.readWriteLock(ctx.name())
      const lease = await lock.write.acquire()
      await assert.rejects(expected(lock.downgrade(lease)), {
        ...code('UNSUPPORTED'),
        message: /zookeeper|memory/,
      })
      lease.assertHeld()
      assert.equal(await b.readWriteLock(lock.name).read.tryAcquire(), null)
      await lease.release()
    },
  },
]
