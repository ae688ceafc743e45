import { describe, expect, it } from 'vitest'

import { memoryStore } from '../../../src/stores/memory/index.ts'
import type { Case, Need, Target } from '../../../src/testkit/case.ts'
import { conformance, lockCases, storeCases } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { sharedStore } from '../../../src/testkit/shared-store.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed, distantStore, plainStore, silentStore, virtualTarget } from './lesser-stores.ts'

const SEEDS = [1, 2, 3]

/** Runs all cases on a virtual clock; those that need what the target lacks must say so, and no others. */
function suite(name: string, lacks: readonly Need[], target: (seed: number) => Target): void {
  describe(`${name} on a virtual clock`, () => {
    for (const testCase of [...storeCases, ...lockCases]) {
      const expected = testCase.needs.some((need) => lacks.includes(need)) ? 'not applicable' : 'passed'
      it(`${testCase.id}: ${testCase.title}`, async () => {
        for (const seed of SEEDS) expect(await outcome(testCase, target(seed))).toBe(expected)
      })
    }
  })
}

async function outcome(testCase: Case, target: Target): Promise<string> {
  const result = await runCase(testCase, target)
  if (result.status === 'failed') throw result.error
  const { env } = target
  if (env instanceof VirtualEnv && env.foregroundTimers > 0) return `${env.foregroundTimers} timers are left`
  return result.status
}

const ALL_THERE: readonly Need[] = ['no queue', 'no shared', 'no permits']

suite('the memory store', [...ALL_THERE, 'no downgrade'], (seed) => virtualTarget(seed))

suite('a store that tells nobody anything', [...ALL_THERE, 'no downgrade', 'push'], (seed) =>
  virtualTarget(seed, silentStore),
)

suite(
  'a store without queue, readers and permits',
  ['queue', 'shared', 'permits', 'downgrade', 'push'],
  (seed) => virtualTarget(seed, plainStore),
)

suite('a store whose writers cannot become readers', [...ALL_THERE, 'downgrade'], (seed) =>
  virtualTarget(seed, (store) => changed(store, { downgrade: undefined })),
)

suite('a store behind a network', [...ALL_THERE, 'no downgrade'], (seed) => {
  const env = new VirtualEnv({ seed })
  const store = distantStore(memoryStore({ now: () => env.instant() }), env)
  return { name: 'distant', env, createStore: () => sharedStore(store) }
})

describe('the conformance cases', () => {
  it('have ids of their own, and titles that say something', () => {
    const ids = conformance().map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { id, title } of conformance()) {
      expect(id).toMatch(/^[a-z]+\/[a-z-]+$/)
      expect(title.length).toBeGreaterThan(15)
    }
  })

  it('can be declared an exception, with the reason', async () => {
    const testCase = storeCases[0] as Case
    const exceptions = { [testCase.id]: 'by design' }
    const result = await runCase(testCase, { ...virtualTarget(1), exceptions })
    expect(result).toEqual({ status: 'not applicable', reason: 'by design' })
  })

  it('report a store that cannot be opened as failed', async () => {
    const testCase = storeCases[0] as Case
    const error = new Error('no server')
    const result = await runCase(testCase, { name: 'none', createStore: () => Promise.reject(error) })
    expect(result).toEqual({ status: 'failed', error })
  })
})
