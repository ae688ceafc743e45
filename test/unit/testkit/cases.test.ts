import { describe, expect, it } from 'vitest'

import { memoryStore } from '../../../src/stores/memory/index.ts'
import type { Target } from '../../../src/testkit/case.ts'
import { conformance } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { sharedStore } from '../../../src/testkit/shared-store.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

function virtualMemory(): Target {
  const env = new VirtualEnv()
  const store = memoryStore({ now: () => env.instant() })
  return { name: 'memory', env, createStore: () => sharedStore(store) }
}

describe('the memory store on a virtual clock', () => {
  for (const testCase of conformance()) {
    it(`${testCase.id}: ${testCase.title}`, async () => {
      const result = await runCase(testCase, virtualMemory())
      if (result.status === 'failed') throw result.error
      expect(result.status).toBe(
        testCase.needs.some((need) => need.startsWith('no ')) ? 'not applicable' : 'passed',
      )
    })
  }
})
