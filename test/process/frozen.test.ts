import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { open } from 'holdfast'
import type { Holdfast } from 'holdfast'

import { available, redis } from '../../scripts/services.mjs'
import { FaultProxy } from '../../src/testkit/fault-proxy.ts'
import { spawnTaker } from '../../src/testkit/taker.ts'
import type { Taker, TakerError, TakerOptions } from '../../src/testkit/taker.ts'
import { lockServer } from '../cli/cli.ts'

// A function between two calls, a laptop whose lid is shut: nothing of the process runs, and nobody tells it.
// docs/guides/in-your-program.md says what comes of it. That the machine's clocks stand still too is tried with clocks
// of the tests' own, in test/unit/runtime/validity.test.ts.

/** The guide's handler, with the work and two calls put in. */
function handlerOfTheGuide(): string {
  const guide = readFileSync('docs/guides/in-your-program.md', 'utf8')
  const [, code = ''] = /## Serverless\n[^]*?```ts\n([^]*?)```/.exec(guide) ?? []
  const library = pathToFileURL(resolve('dist/index.js')).href
  return `${code.replace("'holdfast'", `'${library}'`)}
    let [inside, most] = [0, 0]
    async function makeInvoice({ id }, { signal, token }) {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 20))
      inside--
      return [id, signal.aborted, typeof token]
    }
    const context = { getRemainingTimeInMillis: () => 30_000 }
    const made = await Promise.all([1, 2].map(() => handler({ id: 7 }, context)))
    console.log(JSON.stringify({ made, most, locks: (await holdfast.inspect('invoice:7')).holders }))
  `
}

interface Started {
  readonly url: string
  readonly stop: () => Promise<void>
}

const servers: readonly { name: string; present: boolean; start: () => Promise<Started> }[] = [
  {
    name: 'Redis',
    present: available('redis'),
    start: async () => {
      const server = await redis()
      return { url: server.url, stop: () => server.stop() }
    },
  },
  {
    name: 'the lock server',
    present: true,
    start: async () => {
      const server = await lockServer()
      return { url: server.url, stop: () => Promise.resolve(server.kill('SIGKILL')) }
    },
  },
]

const TTL = 1500
const PATIENCE = 1000

for (const { name, present, start } of servers) {
  describe.skipIf(!present)(`a process that is frozen, with locks at ${name},`, () => {
    let server: Started
    let proxy: FaultProxy
    let through: string
    let names = 0
    const opened: Holdfast[] = []
    const takers: Taker[] = []

    beforeAll(async () => {
      server = await start()
      const { hostname, port } = new URL(server.url)
      proxy = await FaultProxy.open({ host: hostname, port: Number(port) })
      through = server.url.replace(`${hostname}:${port}`, `${proxy.host}:${proxy.port}`)
    })
    afterAll(async () => {
      await proxy.close()
      await server.stop()
    })
    afterEach(async () => {
      proxy.heal()
      await Promise.all(takers.splice(0).map((taker) => taker.kill()))
      await Promise.all(opened.splice(0).map((holdfast) => holdfast.close({ drain: 0 })))
    })

    const other = async (): Promise<Holdfast> => {
      const holdfast = await open(server.url, { ttl: TTL, wait: 20_000 })
      opened.push(holdfast)
      return holdfast
    }
    const taker = async (options: TakerOptions = {}): Promise<Taker> => {
      const url = pathToFileURL(resolve('dist/open.js')).href
      const one = await spawnTaker(
        { url, export: 'openStore', args: through },
        { ttl: TTL, patience: PATIENCE, wait: 20_000, ...options },
      )
      takers.push(one)
      return one
    }
    const freshName = (): string => `frozen-${(names += 1)}`
    const waiting = async (holdfast: Holdfast, lock: string, count: number): Promise<void> => {
      const there = async (): Promise<boolean> => (await holdfast.inspect(lock)).waiters.length === count
      await vi.waitUntil(there, { timeout: 20_000, interval: 10 })
    }

    it('or could be, gives its lock back before the handler returns, as the guide has it', async () => {
      const run = promisify(execFile)
      const { stdout } = await run(
        process.execPath,
        ['--input-type=module', '--eval', `${handlerOfTheGuide()}; await holdfast.close()`],
        { env: { ...process.env, LOCKS: server.url } },
      )
      const invoice = [7, false, 'bigint']
      expect(JSON.parse(stdout)).toEqual({ made: [invoice, invoice], most: 1, locks: [] })
    })

    it('while it holds a lock and for less than the ttl, goes on with it', async () => {
      const lock = freshName()
      const [frozen, neighbour] = [await taker({ ttl: 10_000 }), await other()]
      await frozen.acquire(lock)
      await frozen.stop()
      expect(await neighbour.mutex(lock).tryAcquire()).toBeNull()
      frozen.resume()
      expect(await frozen.state()).toMatchObject({ held: true, aborted: false })
      expect(await frozen.release()).toBe('released')
    })

    it('while it holds a lock and for longer than the ttl, has lost it, knows it, and can take it again', async () => {
      const lock = freshName()
      const [frozen, neighbour] = [await taker(), await other()]
      const first = await frozen.acquire(lock)
      await frozen.stop()
      const lease = await neighbour.mutex(lock).acquire()
      frozen.resume()
      expect(await frozen.state()).toMatchObject({ held: false, aborted: true })
      expect(await frozen.release()).toBe('expired')
      expect(lease.held).toBe(true)
      await lease.release()
      expect(first < lease.token).toBe(true)
      expect((await frozen.acquire(lock)) > lease.token).toBe(true)
    })

    it('while it waits, holds up nobody for longer than its patience, and gets the lock in a later turn', async () => {
      const lock = freshName()
      const [frozen, holder, behind] = [await taker(), await other(), await other()]
      const held = await holder.mutex(lock).acquire()
      const later = frozen.acquire(lock)
      await waiting(holder, lock, 1)
      const next = behind.mutex(lock).acquire()
      await waiting(holder, lock, 2)
      await frozen.stop()
      await held.release()
      const lease = await next
      frozen.resume()
      expect(lease.held).toBe(true)
      await lease.release()
      expect((await later) > lease.token).toBe(true)
      expect(await frozen.state()).toMatchObject({ held: true })
    })

    it('while it waits, is told that its time is over, and leaves nothing in the queue', async () => {
      const lock = freshName()
      const [frozen, holder] = [await taker({ wait: 4000 }), await other()]
      const held = await holder.mutex(lock).acquire()
      const over = sleep(4000)
      const late = frozen.acquire(lock).then(String, ({ code }: TakerError) => code)
      await waiting(holder, lock, 1)
      await frozen.stop()
      // By its silence, after its patience.
      await waiting(holder, lock, 0)
      await over
      frozen.resume()
      // The second one if it was frozen before it had read that it stands in line: no answer came in time.
      expect(['LOCK_TIMEOUT', 'STORE_UNAVAILABLE']).toContain(await late)
      await held.release()
      const after = await holder.mutex(lock).tryAcquire()
      expect(after?.held).toBe(true)
    })

    it('while it is idle, takes a lock over new connections where the old ones were ended', async () => {
      const lock = freshName()
      const frozen = await taker()
      await frozen.acquire(lock)
      await frozen.release()
      await frozen.stop()
      proxy.reset()
      frozen.resume()
      await frozen.acquire(lock)
      expect(await frozen.state()).toMatchObject({ held: true })
    })

    it('while it is idle, takes a lock also where nobody said that the old connections lead nowhere', async () => {
      const lock = freshName()
      const frozen = await taker({ requestTimeout: 1000 })
      await frozen.acquire(lock)
      await frozen.release()
      await frozen.stop()
      const before = proxy.swallowed
      for (const direction of ['requests', 'replies'] as const) proxy.set(direction, { blackhole: true })
      frozen.resume()
      const taken = frozen.acquire(lock)
      // What went into an old connection makes it one for ever; new ones work.
      await vi.waitUntil(() => proxy.swallowed > before, { timeout: 20_000, interval: 5 })
      proxy.heal()
      await taken
      expect(await frozen.state()).toMatchObject({ held: true })
    })
  })
}
