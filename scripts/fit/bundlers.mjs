// A small program that locks, through each bundler, and the result is run: beside its node_modules and without them.
import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** Says what happened with each store. `open` is used, so every driver is somewhere in what has to be bundled. */
const PROGRAM = `
import { Holdfast, open } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { redisStore } from 'holdfast/redis'
import { once } from 'holdfast/recipes'

async function tell() {
  const said = {}
  const holdfast = new Holdfast(memoryStore())
  said.memory = await holdfast.mutex('m').run((lease) => typeof lease.token)
  said.entries = [typeof redisStore, typeof once]
  await holdfast.close()
  for (const url of process.env.URLS.split(' ')) {
    const scheme = url.split(':')[0]
    try {
      const there = await open(url)
      said[scheme] = await there.mutex('m').run(() => 'locked')
      await there.close()
    } catch (error) {
      said[scheme] = error.code ?? String(error)
    }
  }
  return said
}
`
const MAIN = `${PROGRAM}\ntell().then((said) => console.log(JSON.stringify(said)))\n`

const esbuild = (format, out) => async (project) => {
  const options = {
    entryPoints: ['main.js'],
    bundle: true,
    platform: 'node',
    logLevel: 'error',
    format,
    outfile: out,
  }
  // What esbuild advises for CommonJS packages inside of an ES module.
  const banner = format === 'esm' ? { banner: { js: REQUIRE } } : {}
  project.files({
    'esbuild.cjs': `require('esbuild').buildSync(${JSON.stringify({ ...options, ...banner })})`,
  })
  await project.node('esbuild.cjs')
  return out
}
const REQUIRE = `import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);`

const CONFIGS = {
  webpack: `
    require('webpack')({
      mode: 'production', target: 'node', entry: './main.js', context: __dirname,
      output: { path: __dirname + '/out-webpack', filename: 'main.cjs' },
      optimization: { minimize: false },
    }, (error, stats) => {
      if (error || stats.hasErrors()) { console.error(error ?? stats.toString('errors-only')); process.exit(1) }
    })`,
  rollup: `
    import commonjs from '@rollup/plugin-commonjs'
    import json from '@rollup/plugin-json'
    import nodeResolve from '@rollup/plugin-node-resolve'
    export default {
      input: 'main.js', output: { dir: 'out-rollup', format: 'es', entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' },
      plugins: [nodeResolve({ preferBuiltins: true, exportConditions: ['node'] }), commonjs(), json()],
      onwarn() {},
    }`,
  vite: `
    export default {
      logLevel: 'error',
      build: { ssr: 'main.js', outDir: 'out-vite', rollupOptions: { output: { entryFileNames: '[name].mjs' } } },
      ssr: { noExternal: true, target: 'node' },
    }`,
}

const bundlers = {
  'esbuild, ESM': esbuild('esm', 'out-esm/main.mjs'),
  'esbuild, CommonJS': esbuild('cjs', 'out-cjs/main.cjs'),
  webpack: async (project) => {
    project.files({ 'webpack.cjs': CONFIGS.webpack })
    await project.node('webpack.cjs')
    return 'out-webpack/main.cjs'
  },
  rollup: async (project) => {
    project.files({ 'rollup.config.mjs': CONFIGS.rollup })
    await project.tool('rollup/dist/bin/rollup', ['--config', 'rollup.config.mjs', '--silent'])
    return 'out-rollup/main.mjs'
  },
  'vite, for a server': async (project) => {
    project.files({ 'vite.config.mjs': CONFIGS.vite })
    await project.tool('vite/bin/vite.js', ['build', '--config', 'vite.config.mjs'])
    return 'out-vite/main.mjs'
  },
}

const json = (text) => JSON.parse(text.trim().split('\n').at(-1))

function expect(said, wanted) {
  const expected = { memory: 'bigint', entries: ['function', 'function'], ...wanted }
  for (const [key, value] of Object.entries(expected)) {
    if (JSON.stringify(said[key]) !== JSON.stringify(value))
      throw new Error(`${key}: ${JSON.stringify(said[key])} instead of ${JSON.stringify(value)}`)
  }
}
const MISSING = { redis: 'DRIVER_MISSING', mysql: 'DRIVER_MISSING', postgres: 'DRIVER_MISSING' }
const FOUND = { redis: 'locked', mysql: 'STORE_UNAVAILABLE', postgres: 'STORE_UNAVAILABLE' }

/** @returns checks by name; each throws what is wrong */
export function bundlerChecks({ bare, full, env }) {
  const checks = {}
  for (const [name, bundle] of Object.entries(bundlers)) {
    checks[`${name}: without any driver`] = async () => {
      bare.files({ 'package.json': { type: 'module' }, 'main.js': MAIN })
      const out = await bundle(bare)
      expect(json(await bare.node(out, env)), MISSING)
    }
    checks[`${name}: the drivers are in the bundle`] = async () => {
      full.files({ 'package.json': { type: 'module' }, 'main.js': MAIN })
      const out = await bundle(full)
      expect(json(await full.node(out, env)), FOUND)
      expect(json(await full.alone(out, env)), FOUND)
    }
  }
  checks['Next: without any driver'] = () => next(bare, env, MISSING)
  checks['Next: a route that locks'] = () => next(full, env, FOUND)
  return checks
}

/** Holds the lock until the process is told to end, and a little longer. */
const SECTION = `
import { Holdfast } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
const holdfast = new Holdfast(memoryStore())
holdfast.closeOn(['SIGTERM', 'SIGINT'])
export const dynamic = 'force-dynamic'
const section = (lease) =>
  new Promise((resolve) => {
    console.log('inside')
    lease.signal.addEventListener('abort', () => setTimeout(() => resolve('drained'), 100))
  })
export async function GET() { return new Response(await holdfast.mutex('train').run(section)) }
`

/** Built and started as in production, asked once, and told to end inside of a section. */
async function next(project, env, wanted) {
  const app = 'next-app'
  project.files({
    [`${app}/package.json`]: { private: true },
    [`${app}/next.config.mjs`]: `export default { turbopack: { root: ${JSON.stringify(project.home)} } }`,
    [`${app}/app/layout.js`]: `export default ({ children }) => <html><body>{children}</body></html>`,
    [`${app}/app/page.js`]: `export default () => <p>holdfast</p>`,
    [`${app}/app/lock/route.js`]: `${PROGRAM}
      export const dynamic = 'force-dynamic'
      export async function GET() { return Response.json(await tell()) }`,
    [`${app}/app/section/route.js`]: SECTION,
  })
  const program = join(project.home, 'node_modules/next/dist/bin/next')
  const quiet = { ...env, NEXT_TELEMETRY_DISABLED: '1' }
  await project.tool('next/dist/bin/next', ['build', app], quiet)
  const server = spawn(process.execPath, [program, 'start', app, '-p', '0', '-H', '127.0.0.1'], {
    cwd: project.folder,
    env: { ...process.env, ...quiet },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  try {
    let printed = ''
    server.stdout.setEncoding('utf8').on('data', (text) => (printed += text))
    const said = (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => pattern.test(printed) && resolve(pattern.exec(printed)[0])
        server.stdout.on('data', look)
        void ended.then(() => reject(new Error(`next start ended: ${printed}`)))
        look()
      })
    await said(/Ready/)
    const url = await said(/http:\/\/(?:127\.0\.0\.1|localhost):\d+/)
    const answer = await fetch(`${url}/lock`)
    expect(await answer.json(), wanted)
    const held = fetch(`${url}/section`).then((response) => response.text())
    await Promise.race([said(/inside/), held])
    server.kill()
    const drained = await held
    if (drained !== 'drained') throw new Error(`told to end, it answered: ${drained}`)
  } finally {
    server.kill()
    await ended
  }
}
