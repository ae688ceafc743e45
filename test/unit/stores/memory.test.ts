import { describe, expect, it } from 'vitest'

import type { ClaimRequest, RenewRequest } from '../../../src/core/contract.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

describe('the memory store', () => {
  const request = {
    weight: 1,
    capacity: 1,
    ttl: 1000,
    patience: 1000,
    tokens: 1,
    whenBusy: 'try',
    owner: '',
  } as const

  it('lists names in order, page by page, in whichever order they were taken', async () => {
    let seed = 5
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (const order of ['up', 'down', 'any'] as const) {
      const env = new VirtualEnv()
      const store = memoryStore({ now: () => env.instant() })
      let names = Array.from(
        { length: 3000 },
        (_, n) => `${'ab\u00e9'[n % 3]}/${String(n).padStart(5, '0')}`,
      ).sort()
      if (order === 'down') names.reverse()
      if (order === 'any')
        names = names
          .map((name) => [random(1e9), name] as const)
          .sort(([a], [b]) => a - b)
          .map(([, name]) => name)
      for (const [n, name] of names.entries())
        await store.claim({ ...request, ttl: n % 7 === 0 ? 10 : 1000, name, id: `s.${n}` }, 0)
      await env.advance(20)
      const live = names.filter((_, n) => n % 7 !== 0)
      for (const prefix of ['', 'a/', '\u00e9', 'none']) {
        for (const limit of [1, 99, 1000, 5000]) {
          const wanted = live.filter((name) => name.startsWith(prefix)).sort()
          const from = random(wanted.length + 1)
          const cursor = wanted[from - 1] ?? ''
          const page = await store.list({ prefix, limit, cursor }, 0)
          const names = wanted.slice(from, from + limit)
          const more = from + limit < wanted.length
          expect(page).toEqual(more ? { names, cursor: names.at(-1) } : { names })
        }
      }
    }
  })

  it('forgets names whose holders never came back, and keeps their tokens growing', async () => {
    const env = new VirtualEnv()
    const store = memoryStore({ now: () => env.instant() })
    const { queues } = store as unknown as { queues: Map<string, unknown> }
    const first = await store.claim({ ...request, name: 'name 0', id: 's.0' }, 0)
    for (let n = 1; n < 900; n++) await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
    expect(queues.size).toBe(900)
    env.stall(1001)
    for (let n = 900; n < 1200; n++) await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
    expect(queues.size).toBe(300)
    const again = await store.claim({ ...request, name: 'name 0', id: 's.again' }, 0)
    expect(again.kind === 'held' && first.kind === 'held' && again.token > first.token).toBe(true)
  })

  it('forgets a name at once when it is released and another one after it', async () => {
    const store = memoryStore()
    const { queues } = store as unknown as { queues: Map<string, unknown> }
    for (let n = 0; n < 100; n++) {
      await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
      await store.release({ name: `name ${n}`, id: `s.${n}` }, undefined, 0)
    }
    expect(queues.size).toBe(1)
  })
})

describe('renewals in the order of the last time', () => {
  const claimOf = (name: string, id: string): ClaimRequest => ({
    name,
    id,
    weight: 1,
    capacity: 1,
    ttl: 10_000,
    patience: 5_000,
    tokens: 1,
    whenBusy: 'try',
    owner: 'test',
  })
  const renewalOf = (name: string, id: string): RenewRequest => ({ ...claimOf(name, id), tokens: 0 })
  const renewed = { kind: 'renewed', contended: false }

  it('do not take a name that was forgotten for the one that came after it', async () => {
    const store = memoryStore()
    for (const name of ['a', 'b', 'c']) await store.claim(claimOf(name, 's.1'), 0)
    const all = ['a', 'b', 'c'].map((name) => renewalOf(name, 's.1'))
    expect(await store.renew(all, 0)).toEqual([renewed, renewed, renewed])
    // Two that fall idle: the first of them is forgotten. Then somebody else takes it.
    await store.release({ name: 'b', id: 's.1' }, undefined, 0)
    await store.release({ name: 'c', id: 's.1' }, undefined, 0)
    await store.claim(claimOf('b', 't.1'), 0)
    expect(await store.renew(all, 0)).toEqual([renewed, { kind: 'lost' }, { kind: 'lost' }])
    expect(await store.renew([renewalOf('a', 's.1'), renewalOf('b', 't.1')], 0)).toEqual([renewed, renewed])
    expect(await store.claim(claimOf('b', 'u.1'), 0)).toMatchObject({ kind: 'busy' })
  })
})
