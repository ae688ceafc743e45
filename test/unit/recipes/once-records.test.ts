import { describe, expect, it } from 'vitest'

import { LockLostError } from '../../../src/index.ts'
import { once } from '../../../src/recipes/index.ts'
import type { AnyCache } from '../../../src/recipes/index.ts'
import { world } from '../runtime/far-store.ts'
import { HOUR } from './fleet.ts'
import { SharedCache, SharedFencedCache } from './kit.ts'

const circle: { self?: unknown } = {}
circle.self = circle

function instances(w: ReturnType<typeof world>, memory: AnyCache, run: () => unknown) {
  return Array.from({ length: 3 }, () => {
    const { holdfast, env } = w.process()
    return once(holdfast, 'report', { every: HOUR, memory, run, env })
  })
}

describe('a job whose result JSON cannot hold', () => {
  it.each<[string, unknown]>([
    ['a bigint', { rows: 12n }],
    ['a circle', circle],
    ['a toJSON that throws', { toJSON: () => expect.fail('no') }],
  ])('has run all the same: %s', async (_, result) => {
    for (const Memory of [SharedCache, SharedFencedCache]) {
      const w = world()
      let runs = 0
      const jobs = instances(w, new Memory(w.env), () => (runs++, result))
      const outcomes = []
      for (const job of jobs) outcomes.push(await w.env.until(job.tick()))
      expect(runs).toBe(1)
      const last = { outcome: { kind: 'unwritable' } }
      expect(outcomes[0]).toMatchObject({ kind: 'ran' })
      expect(outcomes[0]).toHaveProperty('result', result)
      expect(outcomes.slice(1)).toMatchObject([
        { kind: 'skipped', last },
        { kind: 'skipped', last },
      ])
    }
  })
})

it('a job that throws is heard, also when that cannot be noted', async () => {
  const w = world()
  const memory = { get: () => null, set: () => Promise.reject(new Error('cache down')), delete: () => {} }
  const [job] = instances(w, memory, () => Promise.reject(new Error('disk full')))
  await expect(w.env.until<unknown>(job?.tick() ?? Promise.resolve())).rejects.toThrow('disk full')
})

it.each([
  ['does not take it', () => Promise.reject(new Error('cache down'))],
  ['never answers', () => new Promise(() => {})],
  ['tells somebody else that it is away, as Keyv does', () => Promise.resolve(false)],
])('a job that has run is not said to have not, whose memory %s', async (_, set) => {
  const w = world()
  let runs = 0
  const jobs = instances(w, { get: () => null, set, delete: () => {} }, () => `paid ${++runs}`)
  const ticks = jobs.slice(0, 1).map((job) => job.tick().catch((reason: unknown) => reason))
  const [error] = await w.env.until(Promise.all(ticks))
  expect(error).toBeInstanceOf(LockLostError)
  expect(error).toMatchObject({ lock: 'report', outcome: { status: 'fulfilled', value: 'paid 1' } })
  expect((error as Error).cause).toBeInstanceOf(Error)
})

it.each([
  '',
  'not json',
  'null',
  '17',
  '"text"',
  '[]',
  '{}',
  '{"began":1}',
  '{"began":1,"ended":2,"token":"3"}',
  '{"began":1,"ended":2,"outcome":{"kind":"result"}}',
  '{"began":1,"token":"3","outcome":{"kind":"result"}}',
  '{"ended":2,"token":"3","outcome":{"kind":"result"}}',
])('a record that no run has written keeps none from running: %j', async (text) => {
  const w = world()
  const memory = new SharedCache(w.env)
  await memory.set('ran:report', text, HOUR)
  const [first, second] = instances(w, memory, () => 'done')
  if (first === undefined || second === undefined) throw new Error('no instances')
  expect(await w.env.until(first.last())).toBeNull()
  expect(await w.env.until(first.tick())).toMatchObject({ kind: 'ran' })
  const outcome = { kind: 'result', value: 'done' }
  expect(await w.env.until(second.tick())).toMatchObject({ kind: 'skipped', last: { outcome } })
})

it.each([
  ['parses what looks like JSON', (text: string) => JSON.parse(text) as unknown],
  ['gives bytes', (text: string) => Buffer.from(text)],
  ['says false for nothing', () => false],
])('a memory that %s does not have every instance run the job', async (_, read) => {
  const w = world()
  const kept = new SharedCache(w.env)
  const record = { began: 1, ended: 2, token: '3', outcome: { kind: 'result', value: 4 } }
  await kept.set('ran:report', JSON.stringify(record), HOUR)
  const memory = {
    get: async (key: string) => read((await kept.get(key)) ?? '') as string,
    set: () => {},
    delete: () => {},
  }
  let runs = 0
  const wrong = { code: 'INVALID_ARGUMENT', argument: 'memory' }
  for (const job of instances(w, memory, () => ++runs)) {
    await expect(w.env.until(job.tick())).rejects.toMatchObject(wrong)
    await expect(w.env.until(job.last())).rejects.toMatchObject(wrong)
  }
  expect(runs).toBe(0)
})
