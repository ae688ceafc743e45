import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { openClients } from './client.ts'
import type { RequestOptions } from './client.ts'

const reader = { weight: 1, capacity: ALL }
const writer = { weight: ALL, capacity: ALL }

export const sharing: readonly Case[] = [
  {
    id: 'share/readers',
    title: 'readers hold a name together, with different tokens, and keep writers out',
    needs: ['shared'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      const first = await a.take(a.request(name, reader))
      const second = await b.take(b.request(name, reader))
      assert.notEqual(first.token, second.token)
      await c.findBusy(name, writer)
    },
  },
  {
    id: 'share/writer',
    title: 'a writer is alone',
    needs: ['shared'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, writer))
      await b.findBusy(name, reader)
      await b.findBusy(name, writer)
    },
  },
  {
    id: 'share/last-reader',
    title: 'a writer gets its turn when the last reader has left, and readers that came later wait for it',
    needs: ['shared', 'queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      const readers = [a.request(name, reader), b.request(name, reader)] as const
      await a.take(readers[0])
      await b.take(readers[1])
      const writing = await c.queue(c.request(name, writer))
      await d.findBusy(name, reader)
      const late = await d.queue(d.request(name, reader))
      await a.release(readers[0])
      assert.equal((await c.renew(writing)).kind, 'queued')
      await b.release(readers[1])
      await c.granted(writing)
      assert.equal((await d.renew(late)).kind, 'queued')
      await c.release(writing)
      await d.granted(late)
    },
  },
  {
    id: 'share/readers-together',
    title: 'all readers up to the next writer are let in together',
    needs: ['shared', 'queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      const writing = a.request(name, writer)
      await a.take(writing)
      const first = await b.queue(b.request(name, reader))
      const second = await c.queue(c.request(name, reader))
      const next = await d.queue(d.request(name, writer))
      const last = await b.queue(b.request(name, reader))
      await a.release(writing)
      await b.granted(first)
      await c.granted(second)
      assert.equal((await d.renew(next)).kind, 'queued')
      assert.equal((await b.renew(last)).kind, 'queued')
    },
  },
  {
    id: 'permits/capacity',
    title: 'claims are granted until their weights fill the capacity',
    needs: ['permits'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { capacity: 5, weight: 2 }))
      const second = b.request(name, { capacity: 5, weight: 2 })
      await b.take(second)
      await c.findBusy(name, { capacity: 5, weight: 2 })
      await c.take(c.request(name, { capacity: 5, weight: 1 }))
      await c.findBusy(name, { capacity: 5, weight: 1 })
      await b.release(second)
      await c.findBusy(name, { capacity: 5, weight: 3 })
      await c.take(c.request(name, { capacity: 5, weight: 2 }))
    },
  },
  {
    id: 'permits/many',
    title: 'weights are numbers of any size: of one digit, of two, and of more than a byte',
    needs: ['permits'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      const of = (weight: number): RequestOptions => ({ capacity: 300, weight })
      await a.take(a.request(name, of(9)))
      const large = b.request(name, of(260))
      await b.take(large)
      await c.findBusy(name, of(32))
      await c.take(c.request(name, of(31)))
      await c.findBusy(name, of(1))
      const { capacity, holders } = await c.inspect(name)
      const weights = holders.map(({ weight }) => weight).sort((one, other) => one - other)
      assert.deepEqual([capacity, ...weights], [300, 9, 31, 260])
      await b.release(large)
      await c.findBusy(name, of(261))
      await c.take(c.request(name, of(10)))
      await c.findBusy(name, of(251))
      await c.take(c.request(name, of(250)))
    },
  },
  {
    id: 'permits/head-first',
    title: 'nobody overtakes a heavy waiter, neither by queueing nor by trying',
    needs: ['permits', 'queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      const first = a.request(name, { capacity: 3, weight: 2 })
      await a.take(first)
      const heavy = await b.queue(b.request(name, { capacity: 3, weight: 3 }))
      const light = await c.queue(c.request(name, { capacity: 3, weight: 1 }))
      await d.findBusy(name, { capacity: 3, weight: 1 })
      await a.release(first)
      await b.granted(heavy)
      assert.equal((await c.renew(light)).kind, 'queued')
      await b.release(heavy)
      await c.granted(light)
    },
  },
  {
    id: 'permits/fill',
    title: 'a release lets in as many waiters as fit, and no more',
    needs: ['permits', 'queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      const all = a.request(name, { capacity: 3, weight: 3 })
      await a.take(all)
      const first = await b.queue(b.request(name, { capacity: 3, weight: 1 }))
      const second = await c.queue(c.request(name, { capacity: 3, weight: 2 }))
      const third = await d.queue(d.request(name, { capacity: 3, weight: 1 }))
      await a.release(all)
      await b.granted(first)
      await c.granted(second)
      assert.equal((await d.renew(third)).kind, 'queued')
      const { holders } = await a.inspect(name)
      assert.equal(
        holders.reduce((sum, { weight }) => sum + weight, 0),
        3,
      )
    },
  },
  {
    id: 'permits/leave-lets-in',
    title: 'a heavy waiter that leaves lets in a light one behind it that fits',
    needs: ['permits', 'queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { capacity: 3, weight: 2 }))
      const heavy = await b.queue(b.request(name, { capacity: 3, weight: 3 }))
      const light = await c.queue(c.request(name, { capacity: 3, weight: 1 }))
      assert.equal(await b.release(heavy), 'released')
      await c.granted(light)
    },
  },
]
