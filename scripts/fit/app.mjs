// A program that listens for HTTP: started, asked, and told to end.
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { readFileSync } from 'node:fs'

const PATIENCE_MS = 60_000

/** The program in a guide's page: its block that begins with `// <file>`. */
export function programOf(page, file) {
  const text = readFileSync(new URL(`../../docs/guides/${page}`, import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```[jt]s\n([\s\S]*?)^```$/gm)].map(([, code]) => code)
  const program = blocks.find((code) => code.startsWith(`// ${file}\n`))
  if (program === undefined) throw new Error(`${page} has no program ${file}`)
  return program
}

/** Starts it with a `PORT` of its own, and waits until it answers. */
export async function startApp(file, { cwd, env }) {
  const port = await freePort()
  const options = {
    cwd,
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  }
  const child = spawn(process.execPath, [file], options)
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text))
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)))
  const tooLate = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  const app = {
    get: (path, options) => fetch(`http://127.0.0.1:${port}${path}`, options),
    text: async (path) => (await app.get(path)).text(),
    /** SIGTERM; what it ended by. */
    end: async () => {
      child.kill('SIGTERM')
      const how = await ended
      if (how !== 'SIGTERM' && how !== 0) throw new Error(`it ended with ${how}:\n${printed}`)
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(tooLate)
      child.kill('SIGKILL')
      await ended
    },
  }
  for (;;) {
    const answered = await app.get('/').then(
      () => true,
      () => false,
    )
    if (answered) return app
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it did not start:\n${printed}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}
