import { expect, it } from 'vitest'

import { probationOf } from '../../../../src/stores/quorum/options.ts'

it('an empty server looks on for the longest lease, and never for less than the second that tokens begin with', () => {
  expect(probationOf({})).toBe(30_000)
  expect(probationOf({ maxTtl: 5_000 })).toBe(5_000)
  expect(probationOf({ maxTtl: 100 })).toBe(1_000)
  expect(probationOf({ maxTtl: 100, setUp: 'now' })).toBe(0)
})
