import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'

import { LongestFirst } from './test/runner/longest-first.ts'
import { SecondTries } from './test/runner/second-tries.ts'

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

/** Of those on servers: what measures the machine, or takes all of it. */
const TIMED = [
  'test/cli/start-up.test.ts',
  'test/server/attacks/{crowds,flood,renewals}.test.ts',
  'test/server/{crash,crowd,looks,restart-load}.test.ts',
  'test/stores/memcached/fairness.test.ts',
  'test/stores/redis/{scripts,stalled}.test.ts',
]

/** Servers, processes and real time, of which none is the tests' own: a machine that is busy may need a second try. */
const ON_SERVERS = {
  pool: 'forks',
  retry: process.env.CI === 'true' ? 1 : 0,
  testTimeout: 60_000,
  hookTimeout: 120_000,
} as const

/** They wait most of the time, for leases to run out and servers to come back: more at once than there are cores. */
const WAITING_AT_ONCE = Math.min(8, Math.max(4, 3 * availableParallelism()))

for (const part of ['openers', 'platform'])
  alias.push({ find: new RegExp(`^#${part}$`), replacement: here(`src/${part}/node.ts`) })

export default defineConfig({
  resolve: { alias },
  test: {
    passWithNoTests: true,
    reporters: ['default', new SecondTries()],
    sequence: { sequencer: LongestFirst },
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
          name: 'servers',
          include: [
            'test/{cli,conformance,faults,fleet,process,server,stores}/**/*.test.ts',
            'test/lab/{specimens,live,report,cli,differential}/**/*.test.ts',
            'orms/test/*.test.ts',
          ],
          exclude: [...QUICK, ...TIMED],
          ...ON_SERVERS,
          maxWorkers: WAITING_AT_ONCE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'timed',
          include: TIMED,
          ...ON_SERVERS,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
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
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
