import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { Capabilities } from '../../src/core/contract.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { memcachedStore } from '../../src/stores/memcached/index.ts'
import { capabilitiesOf } from '../../src/stores/redis/capabilities.ts'
import { capabilitiesFor } from '../../src/stores/zookeeper/capabilities.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const readme = readFileSync(`${root}/README.md`, 'utf8')
const snippets = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code ?? '')
// Inside the package, so that its own name leads to what was built.
const folder = `${root}/test/process/.readme`
const run = promisify(execFile)

const surroundings = `
export {}
declare global {
  const client: import('ioredis').Redis
  const holdfast: import('holdfast').Holdfast
  const seat: string
  function sell(seat: string, options: { fence: bigint; signal: AbortSignal }): Promise<void>
}`

beforeAll(() => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/surroundings.ts`, surroundings)
  snippets.forEach((code, index) => writeFileSync(`${folder}/snippet-${index}.ts`, code))
  writeFileSync(
    `${folder}/tsconfig.json`,
    JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        target: 'es2023',
        lib: ['es2023', 'esnext.disposable'],
        strict: true,
        skipLibCheck: true,
        types: ['node'],
        outDir: 'out',
        rootDir: '.',
      },
      include: ['*.ts'],
    }),
  )
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the README', () => {
  it('has snippets that compile, and the one without surroundings runs', async () => {
    expect(snippets.length).toBeGreaterThanOrEqual(2)
    const tsc = createRequire(import.meta.url)
      .resolve('typescript/package.json')
      .replace('package.json', 'bin/tsc')
    const compiled = await run(process.execPath, [tsc, '-p', folder]).catch(
      (error: { stdout: string }) => error,
    )
    expect(compiled.stdout).toBe('')
    const whole = snippets.findIndex((code) => code.includes('memoryStore'))
    const { stdout } = await run(process.execPath, [`${folder}/out/snippet-${whole}.js`])
    expect(stdout).toMatch(/^true \d/)
    expect(stdout).toContain("name: 'job'")
  })

  it('says of the stores what they say of themselves', () => {
    const told = new Map(
      [...readme.matchAll(/^\| (.*) \|$/gm)]
        .map(([, row]) => (row ?? '').split(' | '))
        .map((cells) => [cells[0], cells]),
    )
    const shown = ({ queue, shared, fencing, wakeups, guarantees }: Capabilities): string[] => [
      `${wakeups === 'push' ? 'woken' : 'polled'}, ${queue ? 'FIFO' : 'any order'}`,
      shared ? 'yes' : 'no',
      fencing,
      guarantees.holderCrash,
      guarantees.holderPause,
      guarantees.partition,
      guarantees.storeRestart,
      guarantees.failover,
      guarantees.storeClockJump,
    ]
    const rowOf = (start: string): string[] =>
      ([...told].find(([name]) => name?.includes(start))?.[1] ?? []).slice(2)
    const memcached = memcachedStore('memcached://127.0.0.1:1')
    const remote = holdfastStore('holdfast://127.0.0.1:1')
    expect(rowOf('memory')).toEqual(shown(memoryStore().capabilities))
    expect(rowOf('memcached')).toEqual(shown(memcached.capabilities))
    expect(rowOf('Redis')).toEqual(shown(capabilitiesOf('hybrid')))
    expect(rowOf('ZooKeeper')).toEqual(shown(capabilitiesFor(40_000)))
    expect(rowOf('own server')).toEqual(shown(remote.capabilities))
  })
})
