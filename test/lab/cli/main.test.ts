import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { afterEach, describe, expect, it } from 'vitest'

import { endAll, Running } from '../../cli/cli.ts'

afterEach(endAll)

const MAIN = fileURLToPath(new URL('../../../lab/main.mjs', import.meta.url))

describe('npm run lab', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)(
    'names what was not run when it is told to end by %s, and ends with %i',
    async (signal, code) => {
      const args = [MAIN, '--only', 'sim/claim-queue', '--seeds', '200']
      const running = new Running(spawn(process.execPath, args, { stdio: 'pipe' }))
      await running.says('Simulation')
      running.kill(signal)
      expect(await running.end()).toBe(code)
      expect(running.stdout).toMatch(/Not run:\n( .*the lab was interrupted before\n?)+/)
    },
  )

  it.each(['--html', '--json'])('says before the runs that %s cannot be written', async (option) => {
    const args = [MAIN, '--only', 'sim/claim-queue/calm', '--seeds', '1', option, '/nowhere/at/all']
    const running = new Running(spawn(process.execPath, args, { stdio: 'pipe' }))
    expect(await running.end()).toBe(71)
    expect(running.stderr).toContain('/nowhere/at/all cannot be written')
    expect(running.stdout).toBe('')
  })

  it.each([
    [['--write'], '--write goes with --others'],
    [['--read', 'a.json'], '--read goes with --others'],
    [['--exactly', 'sim/x', '--only', 'y'], '--exactly and --only exclude each other'],
    [['--coverage', '--html', 'a.html'], '--coverage goes alone'],
  ])('refuses %j, which would do nothing', async (args, why) => {
    const running = new Running(spawn(process.execPath, [MAIN, ...args], { stdio: 'pipe' }))
    expect(await running.end()).toBe(64)
    expect(running.stderr).toContain(why)
  })
})
