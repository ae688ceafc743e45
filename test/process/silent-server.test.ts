import { spawn } from 'node:child_process'

import { FaultProxy } from 'holdfast/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'

import { available, mariadb, memcached, postgres, redis, zookeeper } from '../../scripts/services.mjs'
import { startServer } from '../../src/server/index.ts'

const root = new URL('../../dist/index.js', import.meta.url).href

/** Far above what anything here takes, far below the quarter of an hour after which TCP gives up. */
const SOON_MS = 30_000

const STORES = { mariadb, memcached, postgres, redis, zookeeper } as const

async function server(name: keyof typeof STORES | 'holdfast'): Promise<{ url: string; port: number }> {
  if (name === 'holdfast') {
    const own = await startServer({ listen: '127.0.0.1:0', state: null })
    onTestFinished(() => own.close())
    return { url: own.url, port: Number(new URL(own.url).port) }
  }
  const started = await STORES[name]()
  onTestFinished(() => started.stop())
  return started
}

/** Runs a program that opens the URL; `silence` is called when it says so. Resolves when the process has ended. */
function run(url: string, body: string, silence: () => void): Promise<string> {
  const program = `
    import { open } from '${root}'
    import { setTimeout as sleep } from 'node:timers/promises'
    const holdfast = await open('${url}', { ttl: 3000 })
    // Several at once: a store with a pool has several connections then.
    const names = ['a', 'b', 'c', 'd']
    await Promise.all(names.map((name) => holdfast.mutex(name).run(() => sleep(20))))
    ${body}`
  const child = spawn(process.execPath, [
    '--unhandled-rejections=strict',
    '--input-type=module',
    '-e',
    program,
  ])
  const killer = setTimeout(() => child.kill('SIGKILL'), SOON_MS)
  let output = ''
  const hear = (chunk: Buffer): void => {
    output += chunk.toString()
    if (output.includes('now')) silence()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(killer)
      resolve(`${output.trim()}, ${signal ?? code}`)
    })
  })
}

describe.each([...Object.keys(STORES), 'holdfast'] as ('holdfast' | keyof typeof STORES)[])(
  'a process whose %s has fallen silent',
  (name) => {
    const trial = async (body: string): Promise<string> => {
      const { url, port } = await server(name)
      const proxy = await FaultProxy.open({ host: '127.0.0.1', port })
      onTestFinished(() => proxy.close())
      return run(url.replace(`:${port}`, `:${proxy.port}`), body, () => {
        proxy.set('requests', { blackhole: true })
        proxy.set('replies', { blackhole: true })
      })
    }

    it.runIf(name === 'holdfast' || available(name))('ends after close(), when it was idle', async () => {
      const output = await trial(`
        console.log('now')
        await sleep(300)
        const { leftToExpire } = await holdfast.close()
        console.log('closed', leftToExpire.length)`)
      expect(output).toBe('now\nclosed 0, 0')
    })

    it.runIf(name === 'holdfast' || available(name))('ends after close(), when it held a lock', async () => {
      const output = await trial(`
        const lease = await holdfast.mutex('held').acquire()
        const waiting = holdfast.mutex('held').acquire().catch(({ code }) => code)
        console.log('now')
        await sleep(300)
        const { leftToExpire } = await holdfast.close({ drain: 0, timeout: 1000 })
        console.log('closed', leftToExpire.length, await waiting, lease.held)`)
      expect(output).toBe('now\nclosed 1 CLOSED false, 0')
    })
  },
)
