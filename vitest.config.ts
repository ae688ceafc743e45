import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const manifest = JSON.parse(readFileSync(here('package.json'), 'utf8')) as Manifest

// `holdfast/redis` means the source file behind that export, so tests never run against a stale build.
const alias = Object.entries(manifest.exports).flatMap(([subpath, target]) => {
  if (typeof target === 'string') return []
  const source = target.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')
  return [{ find: new RegExp(`^${manifest.name}${subpath.slice(1)}$`), replacement: here(source) }]
})

/** Of the simulation and of the conformance cases: what needs no servers and takes seconds. */
const QUICK = ['test/lab/sim/short.test.ts', 'test/conformance/quorum-memory.test.ts']

export default defineConfig({
  resolve: { alias },
  test: {
    passWithNoTests: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/{unit,property,package}/**/*.test.ts', 'test/lab/checkers/**/*.test.ts', ...QUICK],
          exclude: ['test/**/*.model.test.ts'],
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          // Needs no servers either, but minutes: thousands of simulated runs, and models in every order of events.
          name: 'simulation',
          include: ['test/lab/sim/**/*.test.ts', 'test/**/*.model.test.ts'],
          exclude: QUICK,
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: [
            'test/{cli,conformance,faults,fleet,process,server,stores}/**/*.test.ts',
            'test/lab/{specimens,live,report,cli,differential}/**/*.test.ts',
            'orms/test/*.test.ts',
          ],
          exclude: QUICK,
          pool: 'forks',
          // Each file starts real servers and measures time: more of them at once than a small machine has
          // cores would measure the machine instead.
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
