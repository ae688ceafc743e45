import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'

export const events: readonly Case[] = [
  {
    id: 'events/granted',
    title: 'a waiter is told its grant: which claim, and with which tokens',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      const { token } = await a.take(first)
      const waiting = await b.queue(b.request(first.name, { tokens: 3 }))
      await a.release(first)
      const told = await ctx.eventually('the waiter is told', () =>
        b.events.find(({ kind }) => kind === 'granted'),
      )
      assert.ok(told.kind === 'granted')
      assert.deepEqual([told.name, told.id, told.contended], [first.name, waiting.id, false])
      assert.ok(told.token > token && told.count >= 1)
      const { holders } = await a.inspect(first.name)
      assert.deepEqual(
        holders.map((holder) => [holder.id, holder.token]),
        [[waiting.id, told.token]],
      )
    },
  },
  {
    id: 'events/contended',
    title: 'a holder is told when a queue forms behind it',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      await b.queue(b.request(first.name))
      await ctx.eventually('the holder is told', () =>
        a.events.some((event) => event.kind === 'contended' && event.id === first.id),
      )
    },
  },
  {
    id: 'events/granted-contended',
    title: 'a waiter that is granted while others wait behind it is told so',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      await c.queue(c.request(first.name))
      await a.release(first)
      const told = await ctx.eventually('the waiter is told', () =>
        b.events.find(({ kind }) => kind === 'granted'),
      )
      assert.ok(told.kind === 'granted' && told.id === second.id)
      assert.equal(told.contended, true)
    },
  },
  {
    id: 'events/own',
    title: 'a session is told about its own claims only',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      await a.release(first)
      await b.granted(second)
      await b.release(second)
      // A message to a stranger would have been sent before this one.
      const third = c.request(first.name)
      await c.take(third)
      await a.queue(a.request(first.name))
      await ctx.eventually('the new holder is told', () => c.events.some(({ kind }) => kind === 'contended'))
      assert.deepEqual(
        c.events.filter((event) => event.kind !== 'gap' && !('id' in event && event.id === third.id)),
        [],
      )
    },
  },
  {
    id: 'events/stopped',
    title: 'a session that stopped listening is told nothing, and can still ask',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const waiting = await b.queue(b.request(first.name))
      b.stopWatching()
      const before = b.events.length
      await a.release(first)
      await ctx.eventually('the waiter gets it by asking', async () => {
        const answer = await b.renew(waiting, { tokens: 1 })
        return answer.kind === 'held'
      })
      assert.equal(b.events.length, before)
    },
  },
  {
    id: 'events/deaf-waiter',
    title: 'a waiter that cannot be told holds up those behind it no longer than its patience',
    needs: ['queue', 'push'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const patience = ctx.ttl(300)
      const first = a.request(ctx.name())
      await a.take(first)
      await b.queue(b.request(first.name, { patience }))
      const third = await c.queue(c.request(first.name))
      b.stopWatching()
      await a.release(first)
      await ctx.eventually(
        'the next waiter is granted',
        async () => (await c.renew(third, { tokens: 1 })).kind === 'held',
        patience + ctx.grace,
      )
    },
  },
  {
    id: 'events/contended-all',
    title: 'everybody who holds the name is told when a queue forms behind them',
    needs: ['queue', 'push', 'shared'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      const reader = { weight: 1, capacity: ALL }
      const holding = [a, b, c].map((client) => [client, client.request(name, reader)] as const)
      for (const [client, request] of holding) await client.take(request)
      await d.queue(d.request(name, { weight: ALL, capacity: ALL }))
      for (const [client, { id }] of holding) {
        await ctx.eventually('every holder is told', () =>
          client.events.some((event) => event.kind === 'contended' && event.id === id),
        )
      }
    },
  },
  {
    id: 'events/two-sessions',
    title: 'two sessions of one store are told each its own, also after a third one has stopped listening',
    needs: ['queue', 'push'],
    async run(ctx) {
      const store = await ctx.createStore()
      const [a, b, third] = [
        await Client.open(ctx, store),
        await Client.open(ctx, store),
        await Client.open(ctx, store),
      ]
      third.stopWatching()
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      await ctx.eventually('the holder is told', () =>
        a.events.some((event) => event.kind === 'contended' && event.id === first.id),
      )
      await a.release(first)
      await b.granted(second)
      assert.deepEqual(
        a.events.filter(({ kind }) => kind === 'granted'),
        [],
      )
    },
  },
]
