import { spawnSync } from 'node:child_process'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { lockServer, program } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
beforeAll(async () => {
  server = await lockServer()
})
afterAll(() => server.kill('SIGKILL'))

const ROUNDS = 12

function time(args: readonly string[]): number {
  const began = performance.now()
  const { status } = spawnSync(process.execPath, args, { env: { ...process.env, HOLDFAST_URL: server.url } })
  expect(status).toBe(0)
  return performance.now() - began
}

describe('holdfast run -- true', () => {
  it('adds at most 150 ms to an empty Node', () => {
    // In turns, and the best of each: other work on the machine slows both, and neither at its best.
    const times = Array.from({ length: ROUNDS }, () => ({
      node: time(['-e', '']),
      run: time([program, 'run', 'start-up', '--', 'true']),
    }))
    const best = (of: 'node' | 'run'): number => Math.min(...times.map((round) => round[of]))
    expect(best('run') - best('node')).toBeLessThan(150)
  })
})
