import { spawnSync } from 'node:child_process'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { lockServer, program } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
beforeAll(async () => {
  server = await lockServer()
})
afterAll(() => server.kill('SIGKILL'))

const BATCHES = 4
const TIMES = 5

/**
 * Milliseconds of processor time that one start takes, with all that it starts in turn. Not the time on the clock:
 * beside other tests that measures the machine's load, several times over. What a start waits for (a round trip or two on
 * loopback) is not in it; the benchmark measures that on a machine with nothing else to do.
 */
function processorTime(args: readonly string[]): number {
  const script = `for i in ${'1 '.repeat(TIMES)}; do "$@" || exit; done; times`
  const { stdout, status } = spawnSync('sh', ['-c', script, 'sh', process.execPath, ...args], {
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_URL: server.url },
  })
  expect(status).toBe(0)
  // The second line of `times` is about what the shell has started: user and system, as 0m0.123s.
  const spent = [...(stdout.trim().split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
  return (
    (spent.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0) * 1000) /
    TIMES
  )
}

describe('holdfast run -- true', () => {
  it('adds at most 150 ms of processor time to an empty Node', () => {
    const best = (args: readonly string[]): number =>
      Math.min(...Array.from({ length: BATCHES }, () => processorTime(args)))
    const node = best(['-e', ''])
    const run = best([program, 'run', 'start-up', '--', 'true'])
    expect(node).toBeGreaterThan(0)
    expect(run - node).toBeLessThan(150)
  })
})
