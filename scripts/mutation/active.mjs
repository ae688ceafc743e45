// Runs before every test file of a copy of the tree: which mistake is switched on, or, for none, which are come past.
import { appendFileSync, readFileSync } from 'node:fs'

import { afterAll, beforeAll, expect } from 'vitest'

const { active, reachedTo } = JSON.parse(readFileSync('.mutant.json', 'utf8'))

if (reachedTo === undefined) globalThis.__mutant = (id) => id === active
else {
  const reached = new Set()
  let loading = []
  globalThis.__mutant = (id) => {
    reached.add(id)
    return false
  }
  beforeAll(() => {
    loading = [...reached]
  })
  afterAll(() => {
    const file = expect.getState().testPath
    appendFileSync(reachedTo, `${JSON.stringify({ file, loading, reached: [...reached] })}\n`)
  })
}
