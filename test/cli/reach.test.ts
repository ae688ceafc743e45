import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, describe, expect, it } from 'vitest'

import { endAll, holdfast, run } from './cli.ts'

const AGAIN = 'trying again '

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function serveAt(port: number, ...more: readonly string[]): Promise<void> {
  await holdfast(['serve', '--listen', `127.0.0.1:${port}`, '--state', 'none', '--json', ...more]).says('\n')
}

afterEach(endAll)

describe('a store that is not there yet', () => {
  it('is waited for by run, as long as --wait says', async () => {
    const port = await freePort()
    const url = `holdfast://127.0.0.1:${port}`
    const waiting = holdfast(['run', 'late', '--wait', '50s', '--', 'echo', 'done'], { url })
    await waiting.says(AGAIN)
    await serveAt(port)
    expect(await waiting.end()).toBe(0)
    expect(waiting.stdout).toBe('done\n')
    expect(waiting.stderr.split(AGAIN)).toHaveLength(2)
  })

  it('is waited for by acquire, which says so and prints its answer alone', async () => {
    const port = await freePort()
    const url = `holdfast://127.0.0.1:${port}`
    const waiting = holdfast(['acquire', 'late', '--wait', '50s', '--print', 'token'], { url })
    await waiting.says(AGAIN)
    await serveAt(port)
    expect(await waiting.end()).toBe(0)
    expect(waiting.stdout).toMatch(/^\d+\n$/)
  })

  it('ends the wait of acquire at a signal, with nothing left behind', async () => {
    const port = await freePort()
    const url = `holdfast://127.0.0.1:${port}`
    const waiting = holdfast(['acquire', 'late', '--wait', 'forever'], { url })
    await waiting.says(AGAIN)
    waiting.kill('SIGINT')
    expect(await waiting.end()).toBe(130)
  })

  it.each(['holdfast', 'redis', 'postgres', 'mysql', 'memcached', 'zookeeper'])(
    'is 69 when the wait is over, and at once without one: %s',
    async (scheme) => {
      const url = `${scheme}://127.0.0.1:${await freePort()}`
      const patient = await run(['run', 'a', '--wait', '300ms', '--', 'true'], { url })
      expect(patient.code).toBe(69)
      const hasty = [
        ['run', 'a', '--', 'true'],
        ['run', 'a', '--wait', '0', '--', 'true'],
        ['acquire', 'a'],
      ]
      for (const args of hasty) {
        const { code, stderr } = await run(args, { url })
        expect(code).toBe(69)
        expect(stderr).toContain('ECONNREFUSED')
        expect(stderr).not.toContain(AGAIN)
      }
    },
  )

  it('is given up when the wait is over, also in the middle of a look at it', async () => {
    const port = await freePort()
    const waiting = holdfast(['run', 'a', '--wait', '4s', '--', 'true'], { url: `redis://127.0.0.1:${port}` })
    await waiting.says(AGAIN)
    const silent = createServer((socket) => void socket.on('error', () => {}).resume())
    await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve))
    const began = performance.now()
    expect(await waiting.end()).toBe(69)
    // Such a look takes five seconds by itself.
    expect(performance.now() - began).toBeLessThan(4_700)
    silent.close()
  })

  it('is told apart from one that says no, which no time will change', async () => {
    const port = await freePort()
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-reach-'))
    const tokens = join(folder, 'tokens')
    writeFileSync(tokens, `somebody sha256:${'a'.repeat(64)} admin *\n`, { mode: 0o600 })
    const wrong = join(folder, 'wrong')
    writeFileSync(wrong, 'this-is-not-the-token-of-anybody\n', { mode: 0o600 })
    await serveAt(port, '--tokens-file', tokens)
    const args = ['run', 'a', '--wait', 'forever', '--token-file', wrong, '--', 'true']
    const { code, stderr } = await run(args, { url: `holdfast://127.0.0.1:${port}` })
    expect(code).toBe(77)
    expect(stderr).not.toContain(AGAIN)
  })
})
