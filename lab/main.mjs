#!/usr/bin/env node
// Runs the conformance cases against the real runtime on a virtual clock, seed after seed: npm run lab [-- --seeds 50]
import { parseArgs } from 'node:util'

import { memoryStore } from '../dist/stores/memory/index.js'
import { lockCases, runCase, sharedStore, storeCases, VirtualEnv } from '../dist/testkit/index.js'

const { values } = parseArgs({ options: { seeds: { type: 'string', default: '20' } } })
const seeds = Number(values.seeds)
if (!Number.isInteger(seeds) || seeds < 1) {
  console.error('--seeds must be a whole number of at least 1')
  process.exit(64)
}

const cases = [...storeCases, ...lockCases]
const counts = { passed: 0, 'not applicable': 0, failed: 0 }
const failures = []
const live = process.stdout.isTTY

for (let seed = 1; seed <= seeds; seed += 1) {
  for (const testCase of cases) {
    const env = new VirtualEnv({ seed })
    const store = memoryStore({ now: () => env.instant() })
    const result = await runCase(testCase, { name: 'memory', env, createStore: () => sharedStore(store) })
    counts[result.status] += 1
    if (result.status === 'failed') failures.push({ seed, id: testCase.id, error: result.error })
  }
  const line = `seed ${seed} of ${seeds}: ${counts.passed} passed, ${counts.failed} failed`
  if (live) process.stdout.write(`\r${line}`)
  else if (seed % 5 === 0 || seed === seeds) console.log(line)
}
if (live) console.log()
for (const { seed, id, error } of failures) console.error(`seed ${seed}, ${id}: ${String(error)}`)
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts['not applicable']} skipped`)
process.exit(failures.length > 0 ? 1 : 0)
