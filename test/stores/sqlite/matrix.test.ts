import { execFile } from 'node:child_process'
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

interface Ended {
  readonly code: unknown
  readonly said: string
}

function runOn(major: string): Promise<Ended> {
  // Tried once: what needs luck is to be seen by the run that this one is a part of.
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    'servers',
    '--maxWorkers=2',
    '--retry=0',
  ]
  const args = ['scripts/node-matrix.mjs', major, '--', ...vitest, ...TESTS]
  // This run's own settings are not meant for the other one.
  const options = { cwd: root, env: { ...process.env, VITEST: '', NODE_OPTIONS: '' }, maxBuffer: 2 ** 26 }
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), said: `${stdout}\n${stderr}` }),
    )
  })
}

// A Node that brings SQLite along runs these itself. Both at once: they wait most of the time.
describe.skipIf(process.getBuiltinModule('node:sqlite') !== undefined)('the SQLite store', () => {
  it.concurrent.each(['22', '24'])(
    'keeps all its promises on Node %s',
    { timeout: 300_000 },
    async (major) => {
      const { code, said } = await runOn(major)
      expect(said).toMatch(/Tests.* passed/)
      expect({ code, said }).toMatchObject({ code: 0 })
    },
  )
})
