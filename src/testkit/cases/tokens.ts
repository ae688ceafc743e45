import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { openClients } from './client.ts'
import { runOut } from './renewing.ts'

const BLOCK = 50_000

export const tokens: readonly Case[] = [
  {
    id: 'tokens/grow',
    title: 'every grant has a larger token than the one before, whoever gets it',
    needs: [],
    async run(ctx) {
      const clients = await openClients(ctx)
      const name = ctx.name()
      let last = 0n
      for (let grant = 0; grant < 12; grant += 1) {
        const client = clients[grant % clients.length] ?? clients[0]
        const request = client.request(name)
        const { token, count } = await client.take(request)
        assert.ok(token > last, `${token} comes after ${last}`)
        last = token + BigInt(count) - 1n
        await client.release(request)
      }
    },
  },
  {
    id: 'tokens/blocks',
    title: 'a grant of several tokens keeps all of them from the next holder',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      // More than a clock in microseconds moves on meanwhile: it must not be the clock alone that tells them apart.
      const request = a.request(ctx.name(), { tokens: BLOCK })
      const first = await a.take(request)
      assert.ok(first.count >= 1 && first.count <= BLOCK)
      await a.release(request)
      const next = await b.take(b.request(request.name))
      assert.ok(next.token >= first.token + BigInt(first.count))
    },
  },
  {
    id: 'tokens/expiry',
    title: 'tokens grow across a holder that never released',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name(), { ttl: ctx.ttl(100), tokens: 3 })
      const first = await a.take(request)
      await runOut(ctx, a, request)
      const next = await b.take(b.request(request.name))
      assert.ok(next.token >= first.token + BigInt(first.count))
    },
  },
  {
    id: 'tokens/withdrawn',
    title: 'tokens grow across a withdrawal',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      const first = await a.take(request)
      await a.withdraw(request)
      const next = await b.take(b.request(request.name))
      assert.ok(next.token > first.token)
    },
  },
  {
    id: 'tokens/queue',
    title: 'a waiter is granted with a larger token than everybody before it',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name())
      const { token } = await a.take(first)
      const second = await b.queue(b.request(first.name, { tokens: 7 }))
      const third = await c.queue(c.request(first.name))
      await a.release(first)
      const next = await b.granted(second)
      assert.ok(next.token > token)
      await b.release(second)
      const last = await c.granted(third)
      assert.ok(last.token >= next.token + BigInt(next.count))
    },
  },
  {
    id: 'tokens/shared',
    title: 'readers have tokens of their own, and a writer after them a larger one',
    needs: ['shared'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      const readers = [
        a.request(name, { capacity: ALL }),
        b.request(name, { capacity: ALL, tokens: 4 }),
      ] as const
      const first = await a.take(readers[0])
      const second = await b.take(readers[1])
      assert.ok(second.token >= first.token + BigInt(first.count))
      await a.release(readers[0])
      await b.release(readers[1])
      const writer = await c.take(c.request(name, { capacity: ALL, weight: ALL }))
      assert.ok(writer.token >= second.token + BigInt(second.count))
    },
  },
]
