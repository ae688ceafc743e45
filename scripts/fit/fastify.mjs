// The application of the guide on Fastify, twice, at one Redis.
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'

import { redis } from '../services.mjs'
import { programOf, startApp } from './app.mjs'

const OPTIONS = { module: 'nodenext', target: 'es2022', strict: true, skipLibCheck: true, types: ['node'] }
const SALES = 20

export function fastifyChecks({ full }) {
  return {
    'Fastify: two replicas of the guide’s application': async () => {
      full.files({
        'fastify/package.json': { type: 'module' },
        'fastify/main.ts': programOf('fastify.md', 'main.ts'),
        'fastify/tsconfig.json': { compilerOptions: OPTIONS, files: ['main.ts'] },
      })
      await full.tool('typescript/lib/tsc.js', ['--project', 'fastify'])
      const server = await redis()
      try {
        await tryOut(server, { cwd: full.path('fastify'), env: { LOCKS: server.url } })
      } finally {
        await server.stop()
      }
    },
  }
}

async function tryOut(server, how) {
  const replicas = await Promise.all([startApp('main.js', how), startApp('main.js', how)])
  const [one, other] = replicas
  try {
    const sell = async (at) => (await replicas[at % 2].get('/trains/G101/sell', { method: 'POST' })).json()
    const sold = await Promise.all(Array.from({ length: SALES }, (_, at) => sell(at)))
    const numbers = sold.map((answer) => answer.sold).sort((a, b) => a - b)
    const wanted = Array.from({ length: SALES }, (_, at) => at + 1)
    assert.deepEqual(numbers, wanted, 'each ticket is sold once')
    assert.deepEqual(await (await one.get('/health')).json(), { status: 'up' })

    const building = one.text('/timetable')
    await setTimeout(300)
    await Promise.all([one.end(), building.then((said) => assert.equal(said, 'stopped early'))])

    await server.stop()
    assert.equal((await other.get('/health')).status, 503)
    await other.end()
  } finally {
    for (const replica of replicas) await replica[Symbol.asyncDispose]()
  }
}
