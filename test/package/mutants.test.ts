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

/** A method, a getter or a field of a class in a file of the build. */
const has = (text: string, member: string): boolean =>
  new RegExp(String.raw`^ {4}(?:async |get )?${member}(?:\(|;| =)`, 'm').test(text)

// One that calls what is gone ends the whole matrix with a TypeError, and not with a bug that was caught.
it('every mutant calls what there is', () => {
  const gone: string[] = []
  for (const { id, edits } of mutants) {
    for (const { file, replace } of edits) {
      for (const [, owner, member = ''] of replace.matchAll(/\b(this|claim)\.(\w+)\(/g)) {
        const text = readFileSync(dist(owner === 'this' ? file : 'runtime/claim.js'), 'utf8')
        if (!has(text, member) && !has(readFileSync(dist('runtime/deadlines.js'), 'utf8'), member))
          gone.push(`${id}: ${owner}.${member}()`)
      }
    }
  }
  expect(gone).toEqual([])
})
