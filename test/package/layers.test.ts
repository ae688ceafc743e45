import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { checkLayers, layerFaults, nameFaults, writerFaults } from '../../scripts/layers.mjs'

const repository = fileURLToPath(new URL('../..', import.meta.url))

describe('imports point down only', () => {
  it('in every source file', () => {
    expect(checkLayers(repository)).toEqual([])
  })

  it.each([
    ['src/core/lease.ts', `import { Env } from '../runtime/env.ts'`],
    ['src/core/lease.ts', `import { readFileSync } from 'node:fs'`],
    ['src/core/lease.ts', `import { setTimeout } from 'node:timers/promises'`],
    ['src/core/deep/lease.ts', `export * from '../../stores/memory/index.ts'`],
    ['src/stores/redis/store.ts', `import type { Watchdog } from '../../runtime/watchdog.ts'`],
    ['src/stores/redis/store.ts', `import { memoryStore } from '../memory/index.ts'`],
    ['src/stores/redis/store.ts', `const x = await import('../../locks/mutex.ts')`],
    ['src/stores/redis/store.ts', `import '../../index.ts'`],
    ['src/runtime/watchdog.ts', `import { Mutex } from '../locks/mutex.ts'`],
    ['src/runtime/watchdog.ts', `import { randomBytes } from 'node:crypto'`],
    ['src/locks/mutex.ts', `import {\n  setTimeout,\n} from 'node:timers/promises'`],
    ['src/locks/mutex.ts', `import { leader } from '../recipes/leader.ts'`],
    ['src/recipes/leader.ts', `import { app } from '../server/app.ts'`],
    ['src/server/app.ts', `import { main } from '../cli/main.ts'`],
    ['src/testkit/harness.ts', `import { redisStore } from '../stores/redis/index.ts'`],
    ['src/index.ts', `export * from './cli/main.ts'`],
  ])('and %s may not say: %s', (file, text) => {
    expect(layerFaults(file, text)).toHaveLength(1)
  })

  it.each([
    ['src/core/lease.ts', `import { ttl } from './validity.ts' // not from '../runtime/env.ts'`],
    ['src/stores/redis/scripts/run.ts', `import { x } from '../client.ts'`],
    ['src/stores/redis/store.ts', `import type { Store } from '../../core/contract.ts'`],
    ['src/stores/redis/store.ts', `import { randomBytes } from 'node:crypto'`],
    ['src/stores/mysql/store.ts', `import { sqlStore } from '../sql/store.ts'`],
    ['src/runtime/env.ts', `import { randomBytes } from 'node:crypto'`],
    ['src/runtime/watchdog.ts', `import { EventEmitter } from 'node:events'`],
    ['src/locks/open.ts', `const { redisStore } = await import('../stores/redis/index.ts')`],
    ['src/testkit/harness.ts', `import { memoryStore } from '../stores/memory/index.ts'`],
    ['src/cli/main.ts', `import { Holdfast } from '../index.ts'`],
  ])('while %s may say: %s', (file, text) => {
    expect(layerFaults(file, text)).toEqual([])
  })
})

describe('the linter catches', () => {
  /** One line each, in a folder where it is forbidden, and the rule that has to say so. */
  const forbidden = [
    ['src/core/a.ts', 'export const now = Date.now()', 'no-restricted-globals'],
    ['src/core/b.ts', 'export const now = performance.now()', 'no-restricted-globals'],
    ['src/core/c.ts', 'setTimeout(() => {}, 1)', 'no-restricted-globals'],
    ['src/core/d.ts', 'export const id = Math.random()', 'no-restricted-properties'],
    ['src/core/e.ts', 'export const pid = process.pid', 'no-restricted-globals'],
    ['src/core/f.ts', 'export const id = crypto.randomUUID()', 'no-restricted-globals'],
    ['src/core/g.ts', 'export const now = globalThis.Date.now()', 'no-restricted-globals'],
    ['src/runtime/a.ts', 'export const now = Date.now()', 'no-restricted-globals'],
    ['src/runtime/b.ts', 'export const timer = setInterval(() => {}, 1)', 'no-restricted-globals'],
    ['src/runtime/c.ts', 'export const now = process.hrtime.bigint()', 'no-restricted-properties'],
    ['src/locks/a.ts', 'export const id = Math.random()', 'no-restricted-properties'],
    ['src/locks/b.ts', 'export const signal = AbortSignal.timeout(5)', 'no-restricted-properties'],
    ['src/locks/c.ts', 'export const id = crypto.randomUUID()', 'no-restricted-globals'],
    ['src/locks/d.ts', 'const f = async (): Promise<void> => {}\nf()', 'no-floating-promises'],
    ['src/locks/e.ts', 'const f = async (): Promise<void> => {}\nvoid f()', 'no-floating-promises'],
    ['src/locks/f.ts', 'const f = async (): Promise<void> => {}\n;[1].forEach(f)', 'no-misused-promises'],
    ['src/locks/g.ts', 'export const f = (x: any): void => {}', 'no-explicit-any'],
    ['src/locks/h.ts', 'const unused = 1', 'no-unused-vars'],
    [
      'src/locks/i.ts',
      "export function f(x: 'a' | 'b'): number {\n  switch (x) {\n    case 'a':\n      return 1\n  }\n  return 2\n}",
      'switch-exhaustiveness-check',
    ],
    ['src/locks/j.ts', "console.log('x')", 'no-console'],
  ] as const

  /** The same words where they are at home. */
  const allowed = [
    ['src/runtime/env.ts', 'export const now = (): number => Date.now() + Math.random()'],
    [
      'src/stores/redis/a.ts',
      'const { setTimeout } = globalThis\nexport const timer = setTimeout(() => {}, 1)',
    ],
    ['src/core/ok.ts', 'export const twice = (x: number): number => 2 * Math.max(x, 0)'],
  ] as const

  let root: string
  let found: { file: string; rule: string }[]

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'holdfast-lint-'))
    for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json']) {
      cpSync(join(repository, name), join(root, name))
    }
    symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'))
    for (const [file, text] of [...forbidden, ...allowed]) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), `${text}\n`)
    }
    found = lint(root)
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it.each(forbidden)('%s: %s', (file, _, rule) => {
    expect(found.filter((fault) => fault.file === file).map((fault) => fault.rule)).toContain(rule)
  })

  it.each(allowed)('nothing in %s: %s', (file) => {
    expect(found.filter((fault) => fault.file === file)).toEqual([])
  })
})

function lint(root: string): { file: string; rule: string }[] {
  const oxlint = join(repository, 'node_modules/oxlint/bin/oxlint')
  let output: string
  try {
    output = execFileSync(process.execPath, [oxlint, '--format', 'json', 'src'], {
      cwd: root,
      encoding: 'utf8',
    })
  } catch (error) {
    // It ends with 1 when it found something, as it must here.
    output = (error as { stdout: string }).stdout
  }
  const report = JSON.parse(output) as { diagnostics: { filename: string; code: string }[] }
  return report.diagnostics.map(({ filename, code }) => ({
    file: filename,
    rule: /\(([^)]+)\)/.exec(code)?.[1] ?? code,
  }))
}

describe('a claim has one writer', () => {
  it.each(['claim.state = "held"', 'next.tokens ++', 'claim.contended ||= true', 'claim.lane=to'])(
    'and nobody else says: %s',
    (text) => {
      expect(writerFaults('src/runtime/holding.ts', text)).toHaveLength(1)
      expect(writerFaults('src/locks/lock.ts', text)).toHaveLength(1)
      expect(writerFaults('src/runtime/claim.ts', text)).toEqual([])
      expect(writerFaults('src/stores/zookeeper/claim.ts', text)).toEqual([])
    },
  )

  it.each(['claim.state === "held"', 'task.only = claim', 'next.tokens >= 1', 'claim.hold(now, end, grant)'])(
    'and everybody may say: %s',
    (text) => {
      expect(writerFaults('src/runtime/holding.ts', text)).toEqual([])
    },
  )
})

describe('one job has one file name in every store', () => {
  it('whichever other word was at hand', () => {
    expect(nameFaults('src/stores/redis/renewals.ts')).toEqual([
      "src/stores/redis/renewals.ts: what does this is called renew.ts in every store's folder",
    ])
    expect(nameFaults('src/stores/redis/renew.ts')).toEqual([])
    expect(nameFaults('src/stores/zookeeper/client/listening.ts')).toEqual([])
    expect(nameFaults('src/runtime/attempt.ts')).toEqual([])
  })
})
