import assert from 'node:assert/strict'

import type { ClaimRequest } from '../../core/contract.ts'
import { validUntil } from '../../core/validity.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'

const AT_ONCE = 50

export const claiming: readonly Case[] = [
  {
    id: 'claim/free',
    title: 'a free name is granted at once, with a token and nobody behind',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const held = await a.take(a.request(ctx.name(), { whenBusy: 'try' }))
      assert.ok(held.token > 0n)
      assert.equal(held.count, 1)
      assert.equal(held.contended, false)
    },
  },
  {
    id: 'claim/taken',
    title: 'a name that is held is busy for everybody else, and only that name',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name))
      await b.findBusy(name)
      await a.findBusy(name)
      await b.take(b.request(ctx.name()))
    },
  },
  {
    id: 'claim/request-kept',
    title: 'a request may be frozen, and nothing is read of it after it was answered',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      const read: string[] = []
      const answered = async (request: ClaimRequest): Promise<void> => {
        const mine = { ...request }
        await a.take(mine)
        for (const key of Object.keys(mine)) {
          Object.defineProperty(mine, key, { get: () => read.push(key) })
        }
      }
      const request = a.request(name)
      await answered(request)
      await b.findBusy(name)
      await a.renew(Object.freeze({ ...request, tokens: 0 }))
      await b.findBusy(name)
      await a.release(Object.freeze({ name, id: request.id }))
      const next = Object.freeze(b.request(name))
      await b.take(next)
      await a.findBusy(name)
      assert.deepEqual(read, [])
    },
  },
  {
    id: 'claim/at-once',
    title: `of ${AT_ONCE} claims that arrive at once exactly one is granted`,
    needs: [],
    async run(ctx) {
      const clients = await openClients(ctx)
      const name = ctx.name()
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, async (_, index) => {
          const client = clients[index % clients.length] ?? clients[0]
          return client.claim(client.request(name, { whenBusy: 'try' }))
        }),
      )
      const kinds = answers.map(({ kind }) => kind).sort()
      assert.deepEqual(kinds, [...Array<string>(AT_ONCE - 1).fill('busy'), 'held'])
    },
  },
  {
    id: 'claim/repeated',
    title: 'a claim that is sent twice is granted once, with the same token, and is free after one release',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      const first = await a.take(request)
      const again = await a.take(request)
      assert.equal(again.token, first.token)
      assert.equal((await a.inspect(request.name)).holders.length, 1)
      assert.equal(await a.release(request), 'released')
      await b.take(b.request(request.name))
    },
  },
  {
    id: 'claim/repeated-lasts',
    title:
      'a claim that is sent again lasts for its ttl from then on: whoever is told "held" counts from that request',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(1000)
      const request = a.request(ctx.name(), { ttl })
      await a.take(request)
      await ctx.sleep(ttl * 0.6)
      const sentAt = ctx.env.mono()
      await a.take(request)
      await ctx.sleep(ttl * 0.6)
      // On a machine that stood still meanwhile it may have ended.
      if (ctx.env.mono() < validUntil(sentAt, ttl, ctx.capabilities.earlyExpiry))
        await b.findBusy(request.name)
    },
  },
  {
    id: 'claim/ids-alike',
    title: 'ids that differ in their capital letters only are two claims, of two sessions',
    needs: [],
    async run(ctx) {
      const id = ctx.env.randomId().slice(2)
      const [a, b] = [
        await Client.open(ctx, undefined, `aB${id}`),
        await Client.open(ctx, undefined, `Ab${id}`),
      ]
      const first = a.request(ctx.name())
      const second = b.request(first.name, { whenBusy: 'try' })
      await a.take(first)
      assert.equal((await b.claim(second)).kind, 'busy', 'the other one is another claim')
      assert.equal((await b.renew(second)).kind, 'lost', 'the other one is not renewed')
      assert.equal(await b.release(second), 'not-held', 'the other one is not released')
      assert.deepEqual(
        (await b.inspect(first.name)).holders.map((holder) => holder.id),
        [first.id],
        'an id is shown as it is',
      )
      assert.equal(await a.release(first), 'released')
    },
  },
  {
    id: 'claim/try-leaves-nothing',
    title: 'a try that finds the name busy leaves nothing behind',
    needs: [],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      await b.findBusy(request.name)
      assert.equal((await a.inspect(request.name)).waiters.length, 0)
      await a.release(request)
      await c.take(c.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'claim/no-queue',
    title: 'a store without a queue answers busy also to a claim that would wait',
    needs: ['no queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name))
      const answer = await b.claim(b.request(name, { whenBusy: 'queue' }))
      assert.equal(answer.kind, 'busy')
    },
  },
  {
    id: 'claim/mismatch',
    title: 'a claim with another capacity is refused, told which one counts, and changes nothing',
    needs: ['permits'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { capacity: 3 }))
      const answer = await b.claim(b.request(name, { capacity: 2 }))
      assert.deepEqual(answer, { kind: 'mismatch', capacity: 3 })
      const { holders, waiters, capacity } = await a.inspect(name)
      assert.deepEqual([holders.length, waiters.length, capacity], [1, 0, 3])
      await b.take(b.request(name, { capacity: 3 }))
    },
  },
  {
    id: 'claim/new-capacity',
    title: 'a name that nobody holds or waits for takes a new capacity',
    needs: ['permits'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name(), { capacity: 3 })
      await a.take(first)
      await a.release(first)
      await b.take(b.request(first.name, { capacity: 2, weight: 2 }))
      assert.equal((await b.inspect(first.name)).capacity, 2)
    },
  },
]
