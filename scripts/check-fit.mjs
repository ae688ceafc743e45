// Whether the package fits into the programs that people already have: packed, installed into projects of other
// shapes, built by their tools, and run. Expects a build (`npm run check:fit` makes one).
//
//   node scripts/check-fit.mjs [part of a check's name…]
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { bundlerChecks } from './fit/bundlers.mjs'
import { cacheChecks } from './fit/caches.mjs'
import { edgeChecks } from './fit/edge.mjs'
import { fastifyChecks } from './fit/fastify.mjs'
import { frameworkChecks } from './fit/frameworks.mjs'
import { jestChecks } from './fit/jest.mjs'
import { nestChecks } from './fit/nest.mjs'
import { project, toolbox } from './fit/toolbox.mjs'
import { runtimeChecks } from './fit/runtimes.mjs'
import { schedulerChecks } from './fit/schedulers.mjs'
import { typescriptChecks } from './fit/typescript.mjs'
import { redis } from './services.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const temp = mkdtempSync(join(tmpdir(), 'holdfast-fit-'))
const wanted = process.argv.slice(2)

const home = toolbox()
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--pack-destination', temp], { cwd: root, encoding: 'utf8' }),
)
execFileSync('tar', ['-xzf', join(temp, packed.filename), '-C', temp])
const bare = project(home, 'bare', join(temp, 'package'))
const full = project(home, 'with-drivers', join(temp, 'package'))
const server = await redis()
// Nothing listens at port 9 of the loopback: that a driver says so proves that it was found.
const env = { URLS: `${server.url} mysql://root@127.0.0.1:9/test postgres://root@127.0.0.1:9/test` }

const given = { bare, full, env }
const checks = {
  ...typescriptChecks(given),
  ...jestChecks(given),
  ...cacheChecks(given),
  ...frameworkChecks(given),
  ...nestChecks(given),
  ...fastifyChecks(given),
  ...schedulerChecks(given),
  ...bundlerChecks(given),
  ...edgeChecks(given),
  ...runtimeChecks(given),
}

try {
  for (const [name, check] of Object.entries(checks)) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue
    const started = performance.now()
    try {
      const notes = [await check(), `${((performance.now() - started) / 1000).toFixed(1)} s`]
      console.log(`ok    ${name} (${notes.filter(Boolean).join(', ')})`)
    } catch (error) {
      console.log(`FAIL  ${name}\n${error.message.replace(/^/gm, '        ')}`)
      process.exitCode = 1
    }
  }
} finally {
  await server.stop()
  for (const one of [bare, full]) one.remove()
  rmSync(temp, { recursive: true, force: true })
}
