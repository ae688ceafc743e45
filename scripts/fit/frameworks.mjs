// An application of each framework: it locks in a handler, and is told to end while a section runs.
import { spawn } from 'node:child_process'

const HOLDFAST = `
import { Holdfast } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
`
const SECTION = `
/** Holds the lock until it is told to end, and a little longer. */
const section = (lease) =>
  new Promise((resolve) => {
    console.log('inside')
    lease.signal.addEventListener('abort', () => setTimeout(() => resolve('drained'), 100))
  })
`
const APPS = {
  Express: `
import express from 'express'
${HOLDFAST}
const holdfast = new Holdfast(memoryStore())
holdfast.closeOn(['SIGTERM', 'SIGINT'])
${SECTION}
const app = express()
app.get('/', async (request, response) => {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  response.send(await holdfast.mutex('train').run(section, { signal: gone.signal }))
})
const server = app.listen(0, '127.0.0.1', () => console.log('port', server.address().port))
`,
}

export function frameworkChecks({ bare }) {
  const checks = {}
  for (const [name, program] of Object.entries(APPS)) {
    checks[`${name}: a section is drained when the process is told to end`] = async () => {
      const folder = `app-${name}`
      bare.files({ [`${folder}/package.json`]: { type: 'module' }, [`${folder}/main.js`]: program })
      await drains(bare.path(`${folder}/main.js`))
    }
  }
  return checks
}

const PATIENCE_MS = 20_000

async function drains(file) {
  const app = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => app.once('exit', (code, signal) => resolve(signal ?? code)))
  const tooLate = setTimeout(() => app.kill('SIGKILL'), PATIENCE_MS)
  let printed = ''
  const said = (pattern) =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(printed)
        if (found !== null) resolve(found)
      }
      app.stdout.on('data', look)
      void ended.then((how) => reject(new Error(`ended with ${how}: ${printed}`)))
      look()
    })
  for (const stream of [app.stdout, app.stderr]) stream.on('data', (text) => (printed += text))
  try {
    const [, port] = await said(/port (\d+)/)
    const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text())
    await said(/inside/)
    app.kill('SIGTERM')
    const [text, how] = await Promise.all([answer, ended])
    if (text !== 'drained') throw new Error(`it answered: ${text}\n${printed}`)
    if (how !== 'SIGTERM' && how !== 0) throw new Error(`it ended with ${how}: ${printed}`)
  } finally {
    clearTimeout(tooLate)
    app.kill('SIGKILL')
    await ended
  }
}
