import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, describe, expect, it } from 'vitest'

import { SecondTries } from '../runner/second-tries.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
// In there vitest is found, and nobody looks for tests.
const folder = mkdtempSync(join(root, 'node_modules/.second-tries-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const TESTS = `import { it } from 'vitest'
let tries = 0
it('is always good', () => {})
it('is good at the second try', () => { if (tries++ === 0) throw new Error('too late by a hair') })
it('is never good', () => { throw new Error('no') })
`
const CONFIG = `import { SecondTries } from '../../test/runner/second-tries.ts'
export default { test: { exclude: [], retry: 1, reporters: ['default', new SecondTries()] } }
`

describe('a test that is run once more', () => {
  it('counts as good, and is named last of all; one that fails again is a failure like any other', () => {
    writeFileSync(join(folder, 'lucky.test.ts'), TESTS)
    writeFileSync(join(folder, 'vitest.config.ts'), CONFIG)
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder],
      { encoding: 'utf8', env: { ...process.env, VITEST: '', NO_COLOR: '1', FORCE_COLOR: '0' } },
    )
    expect(status).toBe(1)
    expect(stdout).toMatch(/Tests +1 failed \| 2 passed \(3\)/)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => line.startsWith('!!!'))).toEqual([lines.at(-3), lines.at(-2)])
    expect(lines.slice(-3)).toEqual([
      '!!! 1 test failed at first and was only good when tried again: mend what depends on luck',
      '!!!   lucky.test.ts > is good at the second try (try 2)',
      '      too late by a hair',
    ])
  })

  it('is not spoken of where there was none', () => {
    const said: string[] = []
    new SecondTries((text) => said.push(text)).onTestRunEnd([])
    expect(said).toEqual([])
  })
})
