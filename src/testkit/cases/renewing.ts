import assert from 'node:assert/strict'

import type { ClaimRequest } from '../../core/contract.ts'
import type { Case, CaseContext } from '../case.ts'
import { Client, openClients } from './client.ts'

const THOUSAND = 1000
const AT_A_TIME = 100
/** Often enough that a read and a write which do not belong together are seen to. */
const ROUNDS = 20
/** Does not run out while a case runs. */
const LONG_MS = 60_000

export const renewing: readonly Case[] = [
  {
    id: 'renew/extends',
    title: 'a holder that renews keeps the name beyond its ttl, with the same token',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const ttl = ctx.ttl(1000)
      const request = a.request(ctx.name(), { ttl })
      const { token } = await a.take(request)
      for (let renewal = 0; renewal < 5; renewal += 1) {
        await ctx.sleep(ttl * 0.3)
        assert.equal((await a.renew(request)).kind, 'renewed')
      }
      await b.findBusy(request.name)
      const { holders } = await b.inspect(request.name)
      assert.equal(holders[0]?.token, token)
    },
  },
  {
    id: 'renew/unknown',
    title: 'a claim that the store never saw is lost, also while somebody holds the name',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      assert.deepEqual(await a.renew(request), { kind: 'lost' })
      await a.take(request)
      assert.deepEqual(await b.renew(b.request(request.name)), { kind: 'lost' })
      assert.equal((await a.renew(request)).kind, 'renewed')
    },
  },
  {
    id: 'renew/released',
    title: 'a renewal after the release is lost and does not bring the claim back',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      await a.release(request)
      assert.deepEqual(await a.renew(request), { kind: 'lost' })
      assert.equal((await b.inspect(request.name)).holders.length, 0)
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'renew/expired',
    title: 'a renewal after the ttl is lost and does not bring the claim back',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(request)
      await runOut(ctx, a, request)
      assert.deepEqual(await a.renew(request), { kind: 'lost' })
      assert.equal((await b.inspect(request.name)).holders.length, 0)
      await b.take(b.request(request.name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'renew/taken-over',
    title: 'a renewal by a former holder is lost and does not disturb the new one',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const late = a.request(ctx.name(), { ttl: ctx.ttl(100) })
      await a.take(late)
      await runOut(ctx, a, late)
      const current = b.request(late.name)
      const { token } = await b.take(current)
      assert.deepEqual(await a.renew(late), { kind: 'lost' })
      const { holders } = await b.inspect(late.name)
      assert.deepEqual(
        holders.map((holder) => [holder.id, holder.token]),
        [[current.id, token]],
      )
    },
  },
  {
    id: 'renew/waiter',
    title: 'a waiter that renews hears that it is still queued, and keeps its place',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      await a.take(a.request(name))
      const second = await b.queue(b.request(name))
      const third = await c.queue(c.request(name))
      assert.equal((await b.renew(second)).kind, 'queued')
      const { waiters } = await a.inspect(name)
      assert.deepEqual(
        waiters.map(({ id }) => id),
        [second.id, third.id],
      )
    },
  },
  {
    id: 'renew/tokens',
    title: 'a holder gets a fresh block of tokens when it asks for one, above all before',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const request = a.request(ctx.name())
      const { token, count } = await a.take(request)
      const fresh = await a.renew(request, { tokens: 4 })
      assert.ok(fresh.kind === 'held' && fresh.token >= token + BigInt(count))
      assert.equal(fresh.count, 4)
      assert.equal((await a.renew(request)).kind, 'renewed')
    },
  },
  {
    id: 'renew/mixed',
    title: 'a batch is answered one by one and in order, whatever happened to some of them',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      // In another order than that of their names: answers go by the requests.
      const requests = Array.from({ length: 5 }, () => a.request(ctx.name())).reverse()
      const [first, taken, third, never, last] = requests as [
        ClaimRequest,
        ClaimRequest,
        ClaimRequest,
        ClaimRequest,
        ClaimRequest,
      ]
      for (const request of [first, taken, third, last]) await a.take(request)
      // By the client that took it: over another's connections the release may overtake the rest of a quorum's votes.
      await a.release(taken)
      const answers = await a.renewAll([
        ...[first, taken, third, never].map((request) => ({ ...request, tokens: 0 })),
        { ...last, tokens: 2 },
      ])
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['renewed', 'lost', 'renewed', 'lost', 'held'],
      )
    },
  },
  {
    id: 'renew/mixed-waiters',
    title: 'a batch may mix holders and waiters',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const taken = a.request(ctx.name())
      await a.take(taken)
      const waiting = await b.queue(b.request(taken.name))
      const held = b.request(ctx.name())
      await b.take(held)
      const answers = await b.renewAll([waiting, { ...held, tokens: 0 }])
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['queued', 'renewed'],
      )
    },
  },
  {
    id: 'renew/same-name',
    title: 'a batch may have several claims of one name: each is renewed, and answered, by itself',
    needs: ['permits'],
    async run(ctx) {
      const a = await Client.open(ctx)
      const name = ctx.name()
      const [first, never, second] = [0, 1, 2].map(() => a.request(name, { capacity: 3 })) as [
        ClaimRequest,
        ClaimRequest,
        ClaimRequest,
      ]
      for (const request of [first, second]) await a.take(request)
      const answers = await a.renewAll([first, never, second].map((request) => ({ ...request, tokens: 0 })))
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['renewed', 'lost', 'renewed'],
      )
    },
  },
  {
    id: 'renew/own-ttls',
    title: 'each renewal of a batch lasts as long as it says itself',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const short = ctx.ttl(300)
      for (const order of [0, 1]) {
        const [brief, lasting] = [a.request(ctx.name()), a.request(ctx.name())]
        for (const request of [brief, lasting]) await a.take(request)
        const batch = [
          { ...brief, tokens: 0, ttl: short },
          { ...lasting, tokens: 0 },
        ]
        const answers = await a.renewAll(order === 0 ? batch : batch.reverse())
        assert.ok(answers.every(({ kind }) => kind === 'renewed'))
        await ctx.eventually(
          'the shorter one is free',
          async () => !(await a.holds(brief)),
          short + ctx.grace,
        )
        assert.ok(await a.holds(lasting))
        await b.findBusy(lasting.name)
      }
    },
  },
  {
    id: 'renew/thousand',
    title: `${THOUSAND} names are renewed in one batch`,
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      assert.deepEqual(await a.renewAll([]), [])
      const requests = Array.from({ length: THOUSAND }, (_, index) => a.request(ctx.name(`${index}`)))
      const inChunks = async (work: (request: ClaimRequest) => unknown): Promise<void> => {
        for (let at = 0; at < THOUSAND; at += AT_A_TIME) {
          await Promise.all(requests.slice(at, at + AT_A_TIME).map(work))
        }
      }
      await inChunks((request) => a.take(request))
      const answers = await a.renewAll(requests.map((request) => ({ ...request, tokens: 0 })))
      assert.equal(answers.length, THOUSAND)
      assert.ok(answers.every(({ kind }) => kind === 'renewed'))
      await inChunks((request) => a.release(request))
    },
  },
  {
    id: 'renew/longer',
    title: 'a renewal for longer than the claim was made for lasts as long as it says',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name(), { ttl: ctx.ttl(500) })
      await a.take(request)
      const renewed = await a.renew(request, { ttl: ctx.ttl(LONG_MS), tokens: 0 })
      assert.equal(renewed.kind, 'renewed')
      await ctx.sleep(request.ttl * 1.5)
      assert.ok(await a.holds(request), 'the claim lasts for the ttl of its renewal')
      await b.findBusy(request.name)
    },
  },
  {
    id: 'renew/shorter',
    title: 'a renewal for shorter than the claim was made for ends when it says',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const request = a.request(ctx.name())
      await a.take(request)
      const ttl = ctx.ttl(100)
      assert.equal((await a.renew(request, { ttl, tokens: 0 })).kind, 'renewed')
      await ctx.sleep(ttl)
      await ctx.eventually('the claim has run out by the ttl of its renewal', async () => {
        const answer = await b.claim(b.request(request.name, { whenBusy: 'try' }))
        return answer.kind === 'held'
      })
    },
  },
  {
    id: 'renew/beside-release',
    title: 'renewals that are under way together with a release do not bring the claim back',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const name = ctx.name()
      for (let round = 0; round < ROUNDS; round += 1) {
        const request = a.request(name)
        await a.take(request)
        const [, , released] = await Promise.all([
          a.renew(request),
          a.renew(request),
          a.release(request),
          a.renew(request),
          a.renew(request),
        ])
        assert.equal(released, 'released')
        assert.ok(!(await b.holds(request)), 'what was released stays released')
      }
      await b.take(b.request(name, { whenBusy: 'try' }))
    },
  },
  {
    id: 'renew/beside-claim',
    title: 'renewals that are under way together with a claim do not undo it',
    needs: ['queue'],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      for (let round = 0; round < ROUNDS; round += 1) {
        const waiting = b.request(first.name)
        await Promise.all([a.renew(first), a.renew(first), b.queue(waiting), a.renew(first), a.renew(first)])
        assert.ok(await a.waits(waiting), 'who was queued is still in the queue')
        assert.equal(await b.release(waiting), 'released')
      }
      assert.ok(await a.holds(first))
    },
  },
]

/**
 * Waits until the store has let a claim run out. A store of several servers has by then: one that voted later than the majority lets go
 * later, and while it has not, a renewal may rightly bring the claim back.
 */
export async function runOut(ctx: CaseContext, client: Client, request: ClaimRequest): Promise<void> {
  await ctx.sleep(request.ttl)
  await ctx.eventually('the claim has run out', async () => !(await client.holds(request)))
  await ctx.sleep(request.ttl)
}
