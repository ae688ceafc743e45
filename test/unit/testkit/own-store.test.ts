import { readFileSync } from 'node:fs'

import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import { lockCases, storeCases } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { objectTarget } from './object-target.ts'
import { ObjectDatabase, ObjectStore } from './object-store.ts'

const SEEDS = [1, 2]
const NEAR = new ObjectStore(new ObjectDatabase(() => new VirtualEnv().instant()), async () => {})
  .capabilities

describe('the store of the guide, over a plain object behind a network', () => {
  it.each([...storeCases, ...lockCases].map((each) => [`${each.id}: ${each.title}`, each] as const))(
    '%s',
    async (_, testCase) => {
      for (const seed of SEEDS) {
        const result = await runCase(testCase, objectTarget(seed, ObjectStore))
        if (result.status === 'failed') throw result.error
        const absent = testCase.needs.some((need) => need.startsWith('no '))
        expect(result.status).toBe(absent ? 'not applicable' : 'passed')
      }
    },
  )

  it('passes from far away too, if its minTtl says so', async () => {
    class FarStore extends ObjectStore {
      override readonly capabilities = { ...NEAR, minTtl: 500 }
    }
    const failed: string[] = []
    for (const testCase of [...storeCases, ...lockCases]) {
      const env = new VirtualEnv({ seed: 5 })
      const db = new ObjectDatabase(() => env.instant())
      const createStore = () => new FarStore(db, () => env.sleep(30 + env.random() * 30))
      const { status } = await runCase(testCase, { name: 'far', env, createStore })
      if (status === 'failed') failed.push(testCase.id)
    }
    expect(failed).toEqual([])
  })

  it('is, letter for letter, what the guide shows', () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
    const guide = read('../../../docs/guides/your-own-store.md')
    expect(guide).toContain(`\n\`\`\`ts\n${read('object-store.ts')}\`\`\`\n`)
  })

  it('keeps nothing but what JSON can carry', async () => {
    const env = new VirtualEnv()
    const db = new ObjectDatabase(() => env.instant())
    const store = new ObjectStore(db, () => env.sleep(1))
    const { read, write } = new Holdfast(store, { env }).readWriteLock('catalog')
    const [first] = await env.until(Promise.all([read.acquire(), read.acquire()]))
    write.acquire().catch(() => {})
    await env.advance(100)
    expect(JSON.parse(JSON.stringify(db.records))).toEqual(db.records)
    expect(db.records['catalog']).toMatchObject({ holders: [{}], waiters: [{}] })
    await env.until(first.release())
  })
})
