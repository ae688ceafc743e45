import assert from 'node:assert/strict'

import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'
import { runOut } from './renewing.ts'

export const inspecting: readonly Case[] = [
  {
    id: 'inspect/holder',
    title: 'inspect shows who holds a name: owner, weight, token and the time that is left',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(5000)
      const request = a.request(ctx.name(), { ttl, owner: 'host-7, "worker" №2' })
      const began = ctx.env.mono()
      const { token } = await a.take(request)
      const { name, capacity, holders, waiters } = await b.inspect(request.name)
      const elapsed = ctx.env.mono() - began
      assert.deepEqual([name, capacity, waiters], [request.name, 1, []])
      const [holder] = holders
      assert.ok(holder !== undefined && holders.length === 1)
      assert.deepEqual(
        [holder.id, holder.owner, holder.weight, holder.token],
        [request.id, request.owner, 1, token],
      )
      // Coarse clocks are not meant, but seconds instead of milliseconds are.
      const least = Math.max(0, ttl / 2 - elapsed)
      const left = holder.expiresIn
      assert.ok(left > 0 && left >= least && left <= ttl, `${left} of ${ttl} ms are left`)
    },
  },
  {
    id: 'inspect/waiters',
    title: 'inspect shows who waits, first come first, with owner and weight',
    needs: ['queue', 'permits'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name, { capacity: 4, weight: 3 }))
      const second = await b.queue(b.request(name, { capacity: 4, weight: 2, owner: 'b' }))
      const third = await c.queue(c.request(name, { capacity: 4, weight: 4, owner: 'c' }))
      const { capacity, waiters } = await a.inspect(name)
      assert.equal(capacity, 4)
      assert.deepEqual(
        waiters.map(({ id, owner, weight }) => [id, owner, weight]),
        [
          [second.id, 'b', 2],
          [third.id, 'c', 4],
        ],
      )
      for (const { expiresIn, token } of waiters) {
        assert.ok(expiresIn > 0 && expiresIn <= second.patience)
        assert.equal(token, undefined)
      }
    },
  },
  {
    id: 'inspect/unused',
    title: 'inspect shows nothing for a name that nobody uses, or uses any more',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const released = a.request(ctx.name())
      await a.take(released)
      await a.release(released)
      const expired = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(expired)
      await runOut(ctx, a, expired)
      for (const name of [released.name, expired.name, ctx.name()]) {
        const { holders, waiters } = await a.inspect(name)
        assert.deepEqual([holders, waiters], [[], []])
      }
    },
  },
  {
    id: 'list/pages',
    title: 'list gives every name in use exactly once, page by page',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const prefix = ctx.name()
      const names = Array.from({ length: 25 }, (_, index) => `${prefix}/${index}`)
      const requests = names.map((name) => a.request(name))
      for (const request of requests) await a.take(request)
      for (const limit of [undefined, 1, 7, 25, 1000]) {
        const listed = await a.list(`${prefix}/`, limit)
        assert.deepEqual([...listed].sort(), [...names].sort())
      }
      for (const request of requests.slice(5)) await a.release(request)
      assert.deepEqual([...(await a.list(`${prefix}/`))].sort(), names.slice(0, 5))
    },
  },
  {
    id: 'list/changing',
    title: 'list shows every name that is in use all the time, though others are released between two pages',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const prefix = ctx.name()
      const names = Array.from({ length: 25 }, (_, index) => `${prefix}/${index}`)
      const requests = new Map(names.map((name) => [name, a.request(name)]))
      for (const request of requests.values()) await a.take(request)
      const listed = await a.list(`${prefix}/`, 7, async (shown) => {
        for (const name of shown) {
          const request = requests.get(name)
          if (request !== undefined) await a.release(request)
          requests.delete(name)
        }
      })
      assert.deepEqual([...new Set(listed)].sort(), [...names].sort())
    },
  },
  {
    id: 'list/prefix',
    title: 'list takes its prefix literally',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const base = ctx.name()
      const tails = ['*x', 'ax', '%x', '_x', '?x', '[a]x', '\\x', 'Ax']
      for (const tail of tails) await a.take(a.request(`${base}${tail}`))
      for (const tail of tails) {
        assert.deepEqual(await a.list(`${base}${tail.slice(0, -1)}`), [`${base}${tail}`])
      }
    },
  },
  {
    id: 'list/forgets',
    title: 'nothing is left in the backend for a name that is free again',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const name = ctx.name()
      const request = a.request(name)
      await a.take(request)
      assert.deepEqual(await a.list(name), [name])
      await a.release(request)
      assert.deepEqual(await a.list(name), [])
      const left = await ctx.leftovers()
      assert.deepEqual(
        left.filter((what) => what.includes(name)),
        [],
      )
    },
  },
  {
    id: 'list/expired',
    title: 'list leaves out a name whose holder has run out, although nobody has asked for it since',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const request = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(request)
      assert.deepEqual(await a.list(request.name), [request.name])
      await ctx.sleep(request.ttl)
      await ctx.eventually(
        'the name is not listed any more',
        async () => (await a.list(request.name)).length === 0,
      )
    },
  },
]
