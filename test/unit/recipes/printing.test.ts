import { inspect } from 'node:util'

import { expect, it } from 'vitest'

import { cached, leader, once, stripedStock } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import { HOUR } from './fleet.ts'
import { Shelf } from './shelf.ts'

it.each([1, 3])('what was taken, %i, can be written as JSON', async (quantity) => {
  const w = world()
  const { holdfast, env } = w.process()
  const storage = new Shelf(w.env, [2, 2])
  const stock = stripedStock(holdfast, 'tickets', { segments: 2, storage, env })
  const text = JSON.stringify(await w.env.until(stock.take(quantity)))
  const { parts } = JSON.parse(text) as { parts: { token: unknown }[] }
  expect(parts).toHaveLength(quantity === 1 ? 1 : 2)
  for (const { token } of parts) expect(token).toMatch(/^\d+$/)
})

it("a job's context can be written as JSON", async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const job = once(holdfast, 'report', { every: HOUR, run: (context) => JSON.stringify(context), env })
  expect(await w.env.until(job.tick())).toMatchObject({
    result: expect.stringMatching(/"token":"\d+"/) as string,
  })
})

it('recipes are printed as facts, without what they were given: clients, with passwords', async () => {
  const w = world()
  const { holdfast, env } = w.process()
  const client = { options: { password: 'SECRET' }, sent: 7n }
  const cache = { client, get: () => null, set: () => null, delete: () => null }
  const storage = { client, read: () => 5, write: () => true }
  let term: unknown
  const candidate = leader(holdfast, 'lead', { onElected: (_, elected) => void (term = elected), env })
  await w.env.advance(10)
  const printed: readonly (readonly [unknown, string, object])[] = [
    [once(holdfast, 'report', { every: HOUR, run: () => 1, memory: cache, env }), 'Once', { name: 'report' }],
    [cached(holdfast, { cache, key: 'k', load: () => 1, ttl: 9, env }), 'Cached', { ttl: 9 }],
    [
      stripedStock(holdfast, 'tickets', { segments: 2, storage, env }),
      'StripedStock',
      { name: 'tickets', segments: 2 },
    ],
    [candidate, 'Candidate', { name: 'lead', state: 'leading' }],
    [term, 'Term', { name: 'lead', token: expect.stringMatching(/^\d+$/) as string, over: false }],
  ]
  for (const [thing, label, facts] of printed) {
    expect(JSON.parse(JSON.stringify(thing))).toEqual(facts)
    const text = inspect(thing, { depth: 9 })
    expect(text.startsWith(`${label} {`)).toBe(true)
    expect(text).not.toContain('SECRET')
  }
  await w.env.until(candidate.stop())
  expect(inspect(term)).toContain('over: true')
})
