// Where there are no `node:` modules: a worker at the edge, built for a browser and run in the runtime of Cloudflare's workers, and
// the same bundle in a browser, with a lock server that answers to both.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSocket } from 'node:net'
import { join } from 'node:path'

import { chromium } from '../services.mjs'

const PATIENCE_MS = 60_000
/** What was said is looked at. */
const WANTED = {
  token: 'bigint',
  busy: null,
  woken: true,
  late: 'LOCK_TIMEOUT',
  reentrant: 'UNSUPPORTED',
  signals: 'UNSUPPORTED',
  holders: 0,
  elsewhere: 'INVALID_ARGUMENT',
}

const LOCKS = `
import { Holdfast, open } from 'holdfast'
import { httpStore } from 'holdfast/http'

export async function tell(url) {
  const said = {}
  const code = (error) => error.code
  const holdfast = new Holdfast(httpStore(url), { closeStore: true })
  const other = await open(url)
  const mutex = holdfast.mutex('edge')
  said.token = await mutex.run((lease) => typeof lease.token)
  const lease = await mutex.acquire()
  said.busy = await other.mutex('edge').tryAcquire()
  said.late = await other.mutex('edge').acquire({ wait: 100 }).catch(code)
  const next = other.mutex('edge').acquire()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const released = Date.now()
  await lease.release()
  const theirs = await next
  // Well below the next sign of life of a waiter.
  said.woken = Date.now() - released < 1200
  await theirs.release()
  try { holdfast.mutex('edge', { reentrant: true }) } catch (error) { said.reentrant = error.code }
  try { holdfast.closeOn(['SIGTERM']) } catch (error) { said.signals = error.code }
  said.elsewhere = await open('redis://localhost').catch(code)
  said.holders = (await holdfast.inspect('edge')).holders.length
  await Promise.all([holdfast.close(), other.close()])
  return said
}
`
const WORKER = `import { tell } from './locks.js'
export default { fetch: async (request, env) => Response.json(await tell(env.LOCKS)) }`
const PAGE = `import { tell } from './locks.js'
const report = (said) => fetch('/said', { method: 'POST', body: JSON.stringify(said) })
tell(new URL(location.href).searchParams.get('locks')).then(report, (error) => report(String(error)))`

const BUILD = `
const options = { bundle: true, platform: 'browser', format: 'esm', outdir: 'edge', metafile: true, logLevel: 'error' }
const { metafile } = require('esbuild').buildSync({ ...options, entryPoints: ['worker.js', 'page.js'] })
const foreign = Object.values(metafile.outputs).flatMap(({ imports }) => imports)
if (foreign.length > 0) { console.error('it imports', foreign); process.exit(1) }
`

const CONFIG = (port, url) => `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "net", network = (allow = ["public", "private", "local"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "edge/worker.js")],
  compatibilityDate = "2026-01-01",
  bindings = [(name = "LOCKS", text = "${url}")],
  globalOutbound = "net",
);`

/** It looks for nobody but the page. */
const CHROMIUM = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** @returns checks by name; each throws what is wrong */
export function edgeChecks({ bare }) {
  const build = async () => {
    bare.files({
      'package.json': { type: 'module' },
      'locks.js': LOCKS,
      'worker.js': WORKER,
      'page.js': PAGE,
      'build.cjs': BUILD,
    })
    await bare.node('build.cjs')
    const text = ['worker', 'page'].map((name) => readFileSync(bare.path(`edge/${name}.js`), 'utf8')).join()
    const named = /["'`]node:\w+/.exec(text)
    if (named !== null) throw new Error(`the bundle names ${named[0]}`)
  }
  const inWorkerd = {
    'without node: modules, built for a browser: in workerd': async () => {
      await build()
      await withLockServer(bare, [], async (url) => {
        const port = await freePort()
        bare.files({ 'edge.capnp': CONFIG(port, url) })
        const program = join(bare.home, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd')
        await withProgram(program, ['serve', 'edge.capnp'], bare.folder, async () => {
          expect(await (await answered(`http://127.0.0.1:${port}/`)).json())
        })
      })
    },
  }
  const inBrowser = {
    'without node: modules, built for a browser: in Chromium, from another origin': async () => {
      await build()
      let tell
      const told = new Promise((resolve) => (tell = resolve))
      const page = createServer((request, response) => {
        if (request.method === 'POST') {
          let said = ''
          request.on('data', (text) => (said += text)).on('end', () => tell(JSON.parse(said)))
          return response.end()
        }
        const script = request.url?.startsWith('/page.js') === true
        response.setHeader('content-type', script ? 'text/javascript' : 'text/html')
        response.end(
          script ? readFileSync(bare.path('edge/page.js')) : '<script type="module" src="/page.js"></script>',
        )
      }).listen(0, '127.0.0.1')
      await new Promise((resolve) => page.once('listening', resolve))
      const origin = `http://127.0.0.1:${page.address().port}`
      const browser = await chromium()
      try {
        await withLockServer(bare, ['--origins', origin], async (url) => {
          const address = `${origin}/?locks=${encodeURIComponent(url)}`
          const args = [...CHROMIUM, `--user-data-dir=${bare.path('chromium')}`, address]
          const timer = setTimeout(() => tell('nothing for a minute'), PATIENCE_MS)
          await withProgram(browser, args, bare.folder, async () => expect(await told))
          clearTimeout(timer)
        })
      } finally {
        page.closeAllConnections()
        page.close()
      }
    },
  }
  // It comes as a program for a platform.
  if (process.platform === 'linux' && process.arch === 'x64') return { ...inWorkerd, ...inBrowser }
  console.log('not run here, only on Linux with x64: workerd')
  return inBrowser
}

function expect(said) {
  if (JSON.stringify(sorted(said)) !== JSON.stringify(sorted(WANTED)))
    throw new Error(`it said ${JSON.stringify(said)}`)
}
const sorted = (object) => Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1))

async function withLockServer(project, more, body) {
  const port = await freePort()
  const command = project.path('node_modules/holdfast/dist/cli/main.js')
  const args = [command, 'serve', '--listen', `127.0.0.1:${port}`, '--state', 'none', ...more]
  await withProgram(process.execPath, args, project.folder, async () => {
    await answered(`http://127.0.0.1:${port}/v1/health`)
    await body(`http://127.0.0.1:${port}`)
  })
}

async function withProgram(program, args, cwd, body) {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    await body()
  } catch (error) {
    throw new Error(`${error.message}\n${printed}`, { cause: error })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

async function answered(url) {
  for (const began = performance.now(); ;) {
    try {
      return await fetch(url)
    } catch (error) {
      if (performance.now() - began > PATIENCE_MS) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createSocket().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}
