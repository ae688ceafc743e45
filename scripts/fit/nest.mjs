// The application of the guide on Nest, twice, at one Redis.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

import { redis } from '../services.mjs'
import { programOf, startApp } from './app.mjs'

const OPTIONS = {
  module: 'nodenext',
  target: 'es2022',
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  types: ['node'],
}
const SALES = 20

export function nestChecks({ full }) {
  return {
    'Nest: two replicas of the guide’s application': async () => {
      full.files({
        'nest/package.json': { type: 'commonjs' },
        'nest/main.ts': programOf('nestjs.md', 'main.ts'),
        'nest/tsconfig.json': { compilerOptions: OPTIONS, files: ['main.ts'] },
      })
      await full.tool('typescript/lib/tsc.js', ['--project', 'nest'])
      const server = await redis()
      try {
        await tryOut(server, { cwd: full.path('nest'), env: { LOCKS: server.url } })
      } finally {
        await server.stop()
      }
    },
  }

  async function tryOut(server, how) {
    const replicas = await Promise.all([startApp('main.js', how), startApp('main.js', how)])
    const [one, other] = replicas
    try {
      const began = performance.now()
      const asked = Array.from({ length: SALES }, (_, at) => replicas[at % 2].text('/trains/G101/sell'))
      const sold = (await Promise.all(asked)).map(Number).sort((a, b) => a - b)
      assert.deepEqual(
        sold,
        Array.from({ length: SALES }, (_, at) => at + 1),
        'each ticket is sold once',
      )
      assert.deepEqual((await (await one.get('/health')).json()).info, { holdfast: { status: 'up' } })

      const building = one.text('/trains/timetable')
      await setTimeout(Math.max(300, 3500 - (performance.now() - began)))
      await Promise.all([one.end(), building.then((said) => assert.equal(said, 'stopped early'))])

      // Tokens are microseconds, about: one run in each second, whichever replica.
      const runs = readFileSync(full.path('nest/reports.txt'), 'utf8').trim().split('\n').map(Number)
      const pauses = runs.slice(1).map((token, at) => (token - runs[at]) / 1000)
      assert.ok(runs.length >= 2 && Math.min(...pauses) > 850, `the report was written at ${runs.join()}`)

      await server.stop()
      assert.equal((await other.get('/health')).status, 503)
      await other.end()
    } finally {
      for (const replica of replicas) await replica[Symbol.asyncDispose]()
    }
  }
}
