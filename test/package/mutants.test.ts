import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { edited, mutants } from '../../lab/kill-matrix.mjs'

const dist = (file: string): string => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url))

// The kill matrix finds it out as well, after ten minutes of other tests. `npm test` builds first; else: npm run build.
it('every mutant of the kill matrix fits the code', () => {
  const misfits: string[] = []
  for (const { id, edits } of mutants) {
    for (const edit of edits) {
      try {
        edited(readFileSync(dist(edit.file), 'utf8'), edit)
      } catch (error) {
        misfits.push(`${id}: ${String(error)}`)
      }
    }
  }
  expect(misfits).toEqual([])
})
