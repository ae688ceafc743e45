import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { LONGEST } from '../runner/longest-first.ts'

it('the files that are to be run first are there, and named once', () => {
  const missing = LONGEST.filter(
    (path) => !existsSync(fileURLToPath(new URL(`../../${path}`, import.meta.url))),
  )
  expect(missing).toEqual([])
  expect(new Set(LONGEST).size).toBe(LONGEST.length)
})
