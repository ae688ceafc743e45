import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { build, checkUnchanged, edited, killAll, mutants, withTable } from '../../../lab/kill-matrix.mjs'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TIMEOUT = 600_000

describe('the kill matrix', () => {
  // Inside node_modules: the compiled files find their drivers there, and nobody else looks.
  const own = mkdtempSync(join(ROOT, 'node_modules/.kill-matrix-'))
  const dist = join(own, 'dist')

  beforeAll(() => build(dist), TIMEOUT)
  afterAll(() => rmSync(own, { recursive: true, force: true }))

  it('has at least 25 known bugs, no two alike', () => {
    expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length)
    expect(mutants.length).toBeGreaterThanOrEqual(25)
  })

  it('catches each by the check named for it, and nothing without a bug', { timeout: TIMEOUT }, async () => {
    const caught = await killAll({ dist })
    expect(caught).toHaveLength(mutants.length)
    expect(caught.filter(({ seed }) => seed === null).map(({ mutant }) => mutant.id)).toEqual([])
    expect(await checkUnchanged(dist, caught)).toEqual([])
  })

  it('refuses a mutant that does not fit the code any more', () => {
    const edit = { file: 'a.js', find: 'x', replace: 'y' }
    expect(edited('a x b', edit)).toBe('a y b')
    expect(() => edited('a b', edit)).toThrow('0 times')
    expect(() => edited('x x', edit)).toThrow('2 times')
  })

  it('is the table in docs/correctness.md', () => {
    const page = readFileSync(join(ROOT, 'docs/correctness.md'), 'utf8')
    expect(withTable(page)).toBe(page)
  })
})
