// Runs before every test file of a copy of the tree: which mistake is switched on, or, for none, which are come past.
import { appendFileSync, readFileSync } from 'node:fs'

import { afterAll, expect } from 'vitest'

const { active, reachedTo } = JSON.parse(readFileSync('.mutant.json', 'utf8'))

if (reachedTo === undefined) globalThis.__mutant = (id) => id === active
else {
  const reached = new Set()
  globalThis.__mutant = (id) => {
    reached.add(id)
    return false
  }
  afterAll(() => {
    appendFileSync(
      reachedTo,
      `${JSON.stringify({ file: expect.getState().testPath, reached: [...reached] })}\n`,
    )
  })
}
