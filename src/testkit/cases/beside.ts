import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { ClaimRequest } from '../../core/contract.ts'
import type { Case } from '../case.ts'
import { openClients } from './client.ts'
import type { Client } from './client.ts'

/** Requests that meet: a store that reads and writes in two steps writes over what came in between. */

const ROUNDS = 10
/** So many of a request that may be sent again: one of them meets the others. */
const COPIES = [0, 1, 2, 3]

const PERMIT = { weight: 1, capacity: 8 }
const READER = { weight: 1, capacity: ALL }

/** Claims, and is let in or put in line: which of the two depends on what came first. */
async function join(client: Client, request: ClaimRequest): Promise<void> {
  const { kind } = await client.claim(request)
  assert.ok(kind === 'held' || kind === 'queued', `${request.name} is granted or queued, and not ${kind}`)
}

/** Every claim that was granted or queued is there, and none that was given up. */
async function assertKnown(client: Client, name: string, expected: readonly ClaimRequest[]): Promise<void> {
  const { holders, waiters } = await client.inspect(name)
  const there = [...holders, ...waiters].map(({ id }) => id).sort()
  assert.deepEqual(there, expected.map(({ id }) => id).sort(), 'what was granted or queued, and nothing else')
}

function renewedBeside(id: string, what: string, need: 'permits' | 'shared', kind: typeof PERMIT): Case {
  return {
    id,
    title: `renewals of ${what} that are under way together with claims do not undo them`,
    needs: [need],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const first = a.request(ctx.name(), kind)
      await a.take(first)
      for (let round = 0; round < ROUNDS; round += 1) {
        const [second, third] = [b.request(first.name, kind), c.request(first.name, kind)]
        await Promise.all([
          ...COPIES.map(() => a.renew(first)),
          join(b, second),
          ...COPIES.map(() => a.renew(first)),
          join(c, third),
        ])
        await assertKnown(a, first.name, [first, second, third])
        await Promise.all([b.release(second), c.release(third)])
      }
    },
  }
}

function releasedBeside(id: string, what: string, need: 'permits' | 'shared', kind: typeof PERMIT): Case {
  return {
    id,
    title: `releases of ${what} that are under way together, and with a claim, all count`,
    needs: [need],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const name = ctx.name()
      for (let round = 0; round < ROUNDS; round += 1) {
        const held = [a, b, c].map((client) => ({ client, request: client.request(name, kind) }))
        for (const { client, request } of held) await client.take(request)
        const fourth = d.request(name, kind)
        await Promise.all([
          join(d, fourth),
          ...held.map(async ({ client, request }) => assert.equal(await client.release(request), 'released')),
        ])
        await assertKnown(d, name, [fourth])
        await d.release(fourth)
      }
    },
  }
}

export const beside: readonly Case[] = [
  renewedBeside('beside/permits-renewed', 'a permit', 'permits', PERMIT),
  renewedBeside('beside/readers-renewed', 'a reader', 'shared', READER),
  releasedBeside('beside/permits-released', 'permits', 'permits', PERMIT),
  releasedBeside('beside/readers-released', 'readers', 'shared', READER),
  {
    id: 'beside/waiter-alive',
    title: 'signs of life of a waiter that are under way together with claims do not undo them',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c, d] = await openClients(ctx)
      const first = a.request(ctx.name())
      await a.take(first)
      const second = await b.queue(b.request(first.name))
      for (let round = 0; round < ROUNDS; round += 1) {
        const [third, fourth] = [c.request(first.name), d.request(first.name)]
        await Promise.all([
          ...COPIES.map(() => b.renew(second)),
          join(c, third),
          ...COPIES.map(() => b.renew(second)),
          join(d, fourth),
        ])
        await assertKnown(a, first.name, [first, second, third, fourth])
        await Promise.all([c.release(third), d.release(fourth)])
      }
    },
  },
  {
    id: 'beside/fused',
    title: 'a release that queues again, under way together with claims, undoes none of them',
    needs: ['queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      for (let round = 0; round < ROUNDS; round += 1) {
        const [first, next] = [a.request(name), a.request(name)]
        await a.take(first)
        const [second, third] = [b.request(name), c.request(name)]
        await Promise.all([join(b, second), a.fuse(first, next), join(c, third)])
        await assertKnown(a, name, [next, second, third])
        await Promise.all([a.release(next), b.release(second), c.release(third)])
      }
    },
  },
  {
    id: 'beside/downgraded',
    title: 'a writer that goes on as a reader, together with claims, undoes none of them',
    needs: ['downgrade', 'queue'],
    async run(ctx) {
      const [a, b, c] = await openClients(ctx)
      const name = ctx.name()
      for (let round = 0; round < ROUNDS; round += 1) {
        const first = a.request(name, { weight: ALL, capacity: ALL })
        await a.take(first)
        const [second, third] = [b.request(name, READER), c.request(name, READER)]
        await Promise.all([
          join(b, second),
          a.downgrade(first),
          a.downgrade(first),
          join(c, third),
          a.downgrade(first),
        ])
        await assertKnown(a, name, [first, second, third])
        await Promise.all([a.release(first), b.release(second), c.release(third)])
      }
    },
  },
]
