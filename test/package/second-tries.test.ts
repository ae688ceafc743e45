import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
// In there vitest is found, and nobody looks for tests.
const folder = mkdtempSync(join(root, 'node_modules/.second-tries-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function play(tests: string): { status: number | null; lines: readonly string[] } {
  writeFileSync(join(folder, 'lucky.test.ts'), `import { it, expect } from 'vitest'\nlet tries = 0\n${tests}`)
  writeFileSync(
    join(folder, 'vitest.config.ts'),
    `import { SecondTries } from '../../test/runner/second-tries.ts'
    export default { test: { exclude: [], retry: 1, reporters: ['default', new SecondTries()] } }`,
  )
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder],
    { encoding: 'utf8', env: { ...process.env, VITEST: '', NO_COLOR: '1', FORCE_COLOR: '0' } },
  )
  return { status, lines: stdout.trimEnd().split('\n') }
}

const GOOD = `it('is always good', () => {})\n`
const LUCKY = `it('is good at the second try', () => { if (tries++ === 0) throw new Error('too late by a hair') })\n`
const BAD = `it('is never good', () => { throw new Error('no') })\n`

describe('a test that is run once more', () => {
  it('is named, last of all, although the run is good', () => {
    const { status, lines } = play(GOOD + LUCKY)
    expect(status).toBe(0)
    const head = '!!! 1 test failed at first and was only good when tried again: mend what depends on luck'
    expect(lines.slice(-3)).toEqual([
      head,
      '!!!   lucky.test.ts > is good at the second try (try 2)',
      '      too late by a hair',
    ])
  })

  it('is not named when it fails again: then the run has failed', () => {
    const { status, lines } = play(BAD)
    expect(status).toBe(1)
    expect(lines.filter((line) => line.includes('!!!'))).toEqual([])
  })

  it('is not looked for where all was good at once', () => {
    const { status, lines } = play(GOOD)
    expect(status).toBe(0)
    expect(lines.filter((line) => line.includes('!!!'))).toEqual([])
  })
})
