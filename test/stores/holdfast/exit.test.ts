import { spawn } from 'node:child_process'

import { afterAll, beforeAll, expect, it } from 'vitest'

import { startServer } from '../../../src/server/index.ts'
import type { RunningServer } from '../../../src/server/index.ts'

const dist = (entry: string): string => new URL(`../../../dist/${entry}`, import.meta.url).href

let server: RunningServer
beforeAll(async () => void (server = await startServer({ listen: '127.0.0.1:0' })))
afterAll(() => server.close({ grace: 50 }))

/** Runs a program to its end. */
function run(body: string): Promise<{ code: number | null; out: string; ms: number }> {
  const program = `
    import { Holdfast } from ${JSON.stringify(dist('index.js'))}
    import { holdfastStore } from ${JSON.stringify(dist('stores/holdfast/index.js'))}
    const store = holdfastStore(${JSON.stringify(server.url)})
    const holdfast = new Holdfast(store)
    ${body}`
  const began = performance.now()
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  child.stdout.on('data', (text: Buffer) => (out += text.toString()))
  child.stderr.on('data', (text: Buffer) => (out += text.toString()))
  return new Promise(
    (resolve) => void child.on('exit', (code) => resolve({ code, out, ms: performance.now() - began })),
  )
}

it('keeps no process from ending whose work is done, though nothing was closed', async () => {
  const { code, out, ms } = await run(`
    await holdfast.mutex('exit').run(() => console.log('worked'))
    setTimeout(() => console.log('late'), 25_000).unref()`)
  expect([code, out]).toEqual([0, 'worked\n'])
  expect(ms).toBeLessThan(20_000)
})

it('keeps a process that waits for a lock, however long', async () => {
  const { code, out } = await run(`
    const other = new Holdfast(holdfastStore(${JSON.stringify(server.url)}))
    const lease = await other.mutex('wait', { ttl: 300, renew: false }).acquire()
    const next = await holdfast.mutex('wait').acquire({ wait: Infinity })
    console.log('got it', next.token > lease.token)
    await next.release()`)
  expect([code, out]).toEqual([0, 'got it true\n'])
})
