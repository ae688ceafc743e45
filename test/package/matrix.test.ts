import { resolve } from 'node:path'

import { describe, expect, it } from 'vitest'

import { count, suiteOf } from '../../scripts/matrix/run.mjs'
import { merge, rowOf } from '../../scripts/matrix/table.mjs'

const PAGE = 'Before.\n<!-- matrix: written by npm run matrix -->\n<!-- matrix: end -->\nAfter.\n'
const entry = (id: string) => ({ id, store: 'Redis', server: 'Redis' })
const outcome = (passed: number, failed = 0, skipped = 0) => ({
  version: '8.0.2',
  suites: { conformance: { passed, failed, skipped } },
  date: '2026-11-17',
})

describe('the table of servers', () => {
  it('has a row for each server that was run, in their order, and keeps what was run before', () => {
    const order = ['a', 'b', 'c']
    const once = merge(PAGE, [rowOf(entry('c'), outcome(3))], order)
    const twice = merge(once, [rowOf(entry('a'), outcome(1))], order)
    const again = merge(twice, [rowOf(entry('c'), outcome(4))], order)
    const rows = again.split('\n').filter((line) => line.startsWith('| `'))
    expect(rows.map((row) => row.split(' | ').slice(0, 4))).toEqual([
      ['| `a`', 'Redis', 'Redis 8.0.2', '1 passed'],
      ['| `c`', 'Redis', 'Redis 8.0.2', '4 passed'],
    ])
    expect(again).toMatch(/^Before\.\n[^]*\nAfter\.\n$/)
  })

  it('forgets a server that there is no more', () => {
    const old = merge(PAGE, [rowOf(entry('gone'), outcome(1))], ['gone'])
    expect(merge(old, [], ['a'])).not.toContain('gone')
  })

  it('says what failed and what was left out beside what passed', () => {
    expect(rowOf(entry('a'), outcome(5, 2, 1)).cells[3]).toBe('5 passed, **2 failed**, 1 n/a')
  })
})

describe('what came out of the tests', () => {
  const file = (path: string, ...statuses: string[]) => ({
    name: resolve(path),
    status: statuses.includes('failed') ? 'failed' : 'passed',
    message: '',
    assertionResults: statuses.map((status, at) => ({ status, fullName: `case ${at}` })),
  })

  it('is counted by what the tests are about, and nothing that was left out has passed', () => {
    const { suites, failures } = count({
      testResults: [
        file('test/conformance/redis.test.ts', 'passed', 'skipped', 'failed'),
        file('test/stores/redis/differential.test.ts', 'passed', 'pending'),
        file('test/stores/redis/keys.test.ts', 'todo'),
      ],
    })
    expect(suites).toEqual({
      conformance: { passed: 1, failed: 1, skipped: 1 },
      differential: { passed: 1, failed: 0, skipped: 1 },
      others: { passed: 0, failed: 0, skipped: 1 },
    })
    expect(failures).toEqual(['test/conformance/redis.test.ts: case 2'])
  })

  it('has a failure in it where a file could not be read', () => {
    const broken = { ...file('test/stores/redis/faults.test.ts'), status: 'failed', message: 'cannot start' }
    const { suites, failures } = count({ testResults: [broken] })
    expect(suites['faults']?.failed).toBe(1)
    expect(failures).toEqual(['test/stores/redis/faults.test.ts: cannot start'])
  })

  it.each([
    ['test/stores/zookeeper/curator.test.ts', 'interop'],
    ['test/stores/redis/vote-differential.test.ts', 'differential'],
    ['test/stores/redis/sentinel.test.ts', 'faults'],
  ])('%s belongs to %s', (path, suite) => {
    expect(suiteOf(path)).toBe(suite)
  })
})
