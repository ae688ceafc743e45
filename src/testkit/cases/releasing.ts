import assert from 'node:assert/strict'

import type { Case } from '../case.ts'
import { openClients } from './client.ts'
import { runOut } from './renewing.ts'

export const releasing: readonly Case[] = [
  {
    id: 'release/frees',
    title: 'a release frees the name at once',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      assert.equal(await a.release(request), 'released')
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'release/twice',
    title: 'a second release says that nothing is held, and harms nobody',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      assert.equal(await a.release(request), 'released')
      assert.equal(await a.release(request), 'not-held')
      const next = b.request(request.name)
      await b.take(next)
      assert.equal(await a.release(request), 'not-held')
      assert.ok(await b.holds(next))
    },
  },
  {
    id: 'release/stranger',
    title: 'a release by somebody who does not hold the name changes nothing',
    needs: [],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      assert.equal(await b.release(b.request(request.name)), 'not-held')
      assert.equal(await b.release(b.request(ctx.name())), 'not-held')
      await c.findBusy(request.name)
      assert.ok(await a.holds(request))
    },
  },
  {
    id: 'release/late',
    title: 'a release that comes after the name was taken over leaves the new holder alone',
    needs: [],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const late = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(late)
      await runOut(ctx, a, late)
      const current = b.request(late.name)
      await b.take(current)
      assert.equal(await a.release(late), 'not-held')
      assert.ok(await b.holds(current))
      await c.findBusy(late.name)
    },
  },
  {
    id: 'release/expired',
    title: 'a release after the ttl says that nothing is held',
    needs: [],
    async run(ctx) {
      const [a] = await openClients(ctx)
      const request = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(request)
      await runOut(ctx, a, request)
      assert.equal(await a.release(request), 'not-held')
    },
  },
  {
    id: 'release/one-of-two',
    title: 'a release of one permit leaves the other claims of the same session alone',
    needs: ['permits'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      const first = a.request(name, { capacity: 2 })
      const second = a.request(name, { capacity: 2 })
      await a.take(first)
      await a.take(second)
      await a.release(first)
      assert.deepEqual([await a.holds(first), await a.holds(second)], [false, true])
      await b.take(b.request(name, { capacity: 2 }))
      await b.findBusy(name, { capacity: 2 })
    },
  },
  {
    id: 'release/uncontended',
    title: 'a release whose holder saw nobody behind it wakes a waiter that has come meanwhile',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      // The holder's own view, which may be older than the queue.
      assert.equal(await a.release({ name: first.name, id: first.id, uncontended: true }), 'released')
      await b.granted(second)
    },
  },
]
