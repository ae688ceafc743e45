import { spawn } from 'node:child_process'

import { describe, expect, it } from 'vitest'

const root = new URL('../../dist/index.js', import.meta.url).href
const memory = new URL('../../dist/stores/memory/index.js', import.meta.url).href

interface Ending {
  readonly code: number | null
  readonly output: string
  readonly ms: number
}

/** Runs a program against the built package; `holdfast` is there. */
function run(body: string): Promise<Ending> {
  const program = `
    import { Holdfast } from '${root}'
    import { memoryStore } from '${memory}'
    const holdfast = new Holdfast(memoryStore(), { ttl: 60_000 })
    ${body}`
  const started = performance.now()
  const child = spawn(process.execPath, [
    '--unhandled-rejections=strict',
    '--input-type=module',
    '-e',
    program,
  ])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ code, output: output.trim(), ms: performance.now() - started }))
  })
}

/** Far below the ttl and the wait of these programs, far above what starting Node takes. */
const SOON_MS = 20_000

describe('a process', () => {
  it('ends when its work is done, although it still holds a lease', async () => {
    const { code, output, ms } = await run(`
      const lease = await holdfast.mutex('x').acquire()
      console.log(lease.held)`)
    expect({ code, output }).toEqual({ code: 0, output: 'true' })
    expect(ms).toBeLessThan(SOON_MS)
  })

  it('ends after a thousand runs without anything to be closed', async () => {
    const { code, output, ms } = await run(`
      for (let n = 0; n < 1000; n++) await holdfast.mutex('x' + (n % 7)).run((lease) => lease.signal)
      console.log(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length)`)
    expect({ code, output }).toEqual({ code: 0, output: '0' })
    expect(ms).toBeLessThan(SOON_MS)
  })

  it('does not end while somebody waits for a lock: the wait ends with its error', async () => {
    const { code, output } = await run(`
      await holdfast.mutex('x').acquire()
      await holdfast.mutex('x').acquire({ wait: 300 }).catch((error) => console.log(error.code))`)
    expect({ code, output }).toEqual({ code: 0, output: 'LOCK_TIMEOUT' })
  })

  it('does not end while somebody waits for ever', async () => {
    const { code, output } = await run(`
      const lease = await holdfast.mutex('x').acquire()
      setTimeout(() => console.log('still here') || lease.release(), 500).unref()
      await holdfast.mutex('x').acquire({ wait: Infinity })
      console.log('acquired')`)
    expect({ code, output }).toEqual({ code: 0, output: 'still here\nacquired' })
  })

  it('ends soon after close, with waiters told and nothing unhandled', async () => {
    const { code, output, ms } = await run(`
      await holdfast.mutex('x').acquire()
      const waits = Array.from({ length: 50 }, () => holdfast.mutex('x').acquire().catch((error) => error.code))
      await holdfast.close({ drain: 0 })
      console.log(new Set(await Promise.all(waits)))`)
    expect({ code, output }).toEqual({ code: 0, output: "Set(1) { 'CLOSED' }" })
    expect(ms).toBeLessThan(SOON_MS)
  })
})
