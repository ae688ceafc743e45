import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis } from '../../scripts/services.mjs'
import { lockServer, program } from './cli.ts'

const BATCHES = 4
const TIMES = 5

/**
 * Milliseconds of processor time that one start takes, with all that it starts in turn. Not the time on the clock:
 * beside other tests that measures the machine's load, several times over. What a start waits for (a round trip or two on
 * loopback) is not in it; the benchmark measures that on a machine with nothing else to do.
 */
function processorTime(args: readonly string[], url: string): number {
  const script = `for i in ${'1 '.repeat(TIMES)}; do "$@" || exit; done; times`
  const { stdout, status } = spawnSync('sh', ['-c', script, 'sh', process.execPath, ...args], {
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_URL: url },
  })
  expect(status).toBe(0)
  // The second line of `times` is about what the shell has started: user and system, as 0m0.123s.
  const spent = [...(stdout.trim().split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
  return (
    (spent.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0) * 1000) /
    TIMES
  )
}

/** What the command adds to an empty Node. The two are measured in turns, and the best of each counts. */
function added(url: string): number {
  const [node, run]: [number[], number[]] = [[], []]
  for (let batch = 0; batch < BATCHES; batch++) {
    node.push(processorTime(['-e', ''], url))
    run.push(processorTime([program, 'run', 'start-up', '--', 'true'], url))
  }
  expect(Math.min(...node)).toBeGreaterThan(0)
  return Math.min(...run) - Math.min(...node)
}

interface Loaded {
  /** Of the package, and of the driver. */
  readonly ours: readonly string[]
  readonly drivers: readonly string[]
  readonly builtin: readonly string[]
}

/** The files that the command has loaded when it ends. */
function loadedBy(url: string): Loaded {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loaded-'))
  try {
    const list = join(folder, 'list.json')
    const hook = join(folder, 'hook.cjs')
    const told = '{ files: Object.keys(require.cache), builtin: process.moduleLoadList }'
    writeFileSync(
      hook,
      `process.on('exit', () => require('fs').writeFileSync(${JSON.stringify(list)}, JSON.stringify(${told})))`,
    )
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--require', hook, program, 'run', 'start-up', '--', 'true'],
      { encoding: 'utf8', env: { ...process.env, HOLDFAST_URL: url } },
    )
    expect([status, stderr]).toEqual([0, ''])
    const { files, builtin } = JSON.parse(readFileSync(list, 'utf8')) as {
      files: string[]
      builtin: string[]
    }
    const own = files.filter((file) => file !== hook)
    return {
      ours: own.filter((file) => !file.includes('node_modules')),
      drivers: own.filter((file) => file.includes('node_modules')),
      builtin: builtin.map((name) => name.replace('NativeModule ', '')),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe('The command, started by another program', () => {
  // pm2 imports what lies in a package of modules, and requires anything else.
  it.each([
    ['--input-type=module', '-e', 'await import(process.argv[1])'],
    ['--input-type=commonjs', '-e', 'require(process.argv[1])'],
    ['--input-type=commonjs', '-e', 'import(process.argv[1])'],
  ])('%s %s "%s"', (...args) => {
    const started = (...words: string[]): unknown[] => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [...args, program, ...words], {
        encoding: 'utf8',
        env: { ...process.env, HOLDFAST_URL: 'memory:' },
      })
      return [status, stdout + stderr]
    }
    expect(started('--version')).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/)])
    expect(started('run', 'name', '--', 'true')).toEqual([64, expect.stringContaining('memory:')])
  })
})

/** 36 and 37; as separate modules three times as many. Small ones that several commands share come and go. */
const MOST_FILES = 42

describe('holdfast run -- true, at a lock server', () => {
  let server: Awaited<ReturnType<typeof lockServer>>
  beforeAll(async () => {
    server = await lockServer()
  })
  afterAll(() => server.kill('SIGKILL'))

  // 40 to 45, 55 on a very busy machine; as separate modules 63 and 80, on newer Nodes, where HTTP brought `fetch` along, 95.
  it('adds at most 65 ms of processor time to an empty Node', () => {
    expect(added(server.url)).toBeLessThan(65)
  })

  it('loads few files, none of them a module, and nothing of what serves the other commands', () => {
    const { ours, drivers, builtin } = loadedBy(server.url)
    expect(ours.some((file) => file.endsWith('dist/commonjs/command.cjs'))).toBe(true)
    expect(ours.filter((file) => !file.endsWith('.cjs'))).toEqual([])
    expect(ours.length).toBeLessThan(MOST_FILES)
    expect(drivers).toEqual([])
    expect(builtin).toContain('http')
    // Certificates, and all of `fetch`, each take Node as long as the whole command does.
    expect(builtin.filter((name) => /^(tls|https|internal\/deps\/undici\/undici)$/.test(name))).toEqual([])
    // Modules take a loader of their own, and leave nothing in require's list.
    expect(builtin).not.toContain('internal/modules/esm/translators')
  })
})

describe.skipIf(!available('redis'))('holdfast run -- true, on Redis', () => {
  let server: Awaited<ReturnType<typeof redis>>
  beforeAll(async () => {
    server = await redis()
  })
  afterAll(() => server.stop())

  // 75 to 80, 90 on a very busy machine; half of it is the driver's. As separate modules 120 and 140.
  it('adds at most 105 ms of processor time to an empty Node', () => {
    expect(added(server.url)).toBeLessThan(105)
  })

  it('loads few files besides the driver, and one driver', () => {
    const { ours, drivers } = loadedBy(server.url)
    expect(ours.length).toBeGreaterThan(10)
    expect(ours.length).toBeLessThan(MOST_FILES)
    expect(drivers.some((file) => file.includes('/ioredis/'))).toBe(true)
    expect(drivers.filter((file) => file.includes('/@redis/'))).toEqual([])
  })
})
