import { existsSync } from 'node:fs'

import { describe, expect, it } from 'vitest'

import { VARIANTS, verdictOf } from '../../../lab/specification.mjs'

// Checked by `npm run lab`: it takes minutes. Here only that what TLC says is understood.
describe('The specification', () => {
  it('has a sound variant and broken ones, each with its bounds', () => {
    expect(VARIANTS.some(({ breaks }) => breaks === undefined)).toBe(true)
    expect(VARIANTS.filter(({ breaks }) => breaks !== undefined).length).toBeGreaterThan(1)
    for (const { id } of VARIANTS)
      expect(existsSync(new URL(`../../../lab/spec/${id}.cfg`, import.meta.url))).toBe(true)
  })

  it('holds only if TLC went through all of it', () => {
    const states = '2,792 states generated, 364 distinct states found, 0 states left on queue.'
    expect(verdictOf(`Model checking completed. No error has been found.\n${states}`)).toEqual({
      seen: 'held',
      why: '364 states, all of them',
    })
    expect(verdictOf(`Error: Invariant Exclusion is violated.\n${states}`)).toEqual({
      seen: 'broke',
      by: 'Exclusion',
      why: 'Exclusion is violated, after 364 states',
    })
    expect(verdictOf('Error: Parsing or semantic analysis failed.')).toMatchObject({ seen: 'unknown' })
    expect(verdictOf('Progress(12): 28,027 states generated')).toMatchObject({ seen: 'unknown' })
  })
})
