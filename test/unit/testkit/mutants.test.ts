import { describe, expect, it } from 'vitest'

import { conformance } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { mutants } from './object-mutants.ts'
import { objectTarget } from './object-target.ts'

const SEEDS = Array.from({ length: 20 }, (_, n) => n + 1)

describe('a store in which', () => {
  it.each(mutants)('$mistake is caught whatever the seed', async ({ Client, caughtBy }) => {
    for (const id of caughtBy) {
      const testCase = conformance().find((candidate) => candidate.id === id)
      if (testCase === undefined) throw new Error(`there is no case ${id}`)
      for (const seed of SEEDS) {
        const { status } = await runCase(testCase, objectTarget(seed, Client))
        expect([id, seed, status]).toEqual([id, seed, 'failed'])
      }
    }
  })
})
