import { expect, it } from 'vitest'

import { once, stripedStock } from '../../../src/recipes/index.ts'
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
