import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const TESTS = [
  'test/conformance/sqlite.test.ts',
  'test/stores/sqlite/sqlite.test.ts',
  'test/stores/sqlite/guarded.test.ts',
  'test/stores/sqlite/users-transactions.test.ts',
  'test/stores/sqlite/differential.test.ts',
  'test/fleet/sqlite.test.ts',
  'test/stores/sqlite/tidy.test.ts',
  'test/stores/sqlite/files.test.ts',
  'test/stores/sqlite/options.test.ts',
  'test/stores/sqlite/users-classes.test.ts',
]

// A Node that brings SQLite along runs these itself.
describe.skipIf(process.getBuiltinModule('node:sqlite') !== undefined)('the SQLite store', () => {
  it.each(['22', '24'])('keeps all its promises on Node %s', { timeout: 300_000 }, (major) => {
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'servers', ...TESTS]
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['scripts/node-matrix.mjs', major, '--', ...vitest],
      // This run's own settings are not meant for the other one.
      { cwd: root, encoding: 'utf8', env: { ...process.env, VITEST: '', NODE_OPTIONS: '' } },
    )
    expect(`${stdout}\n${stderr}`).toMatch(/Tests.* passed/)
    expect(status, `${stdout}\n${stderr}`).toBe(0)
  })
})
