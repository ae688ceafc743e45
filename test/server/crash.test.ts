import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { Holdfast } from '../../src/index.ts'
import { assertNone, checkExclusivity, checkTokenOrder, holdsOf, Recorder } from '../../src/testkit/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, temporaryFolder } from './helpers.ts'

const PROGRAM = fileURLToPath(new URL('crash-server.mjs', import.meta.url))

interface Child {
  readonly url: string
  readonly startsIn: number
  readonly ready: Promise<void>
  kill(): Promise<void>
}

async function launch(listen: string, state: string): Promise<Child> {
  const child: ChildProcess = fork(PROGRAM, [listen, state])
  afterwards(() => child.kill('SIGKILL'))
  const { url, startsIn } = await new Promise<{ url: string; startsIn: number }>((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', () => reject(new Error('the server ended while starting')))
  })
  const ready = new Promise<void>((resolve) => void child.once('message', () => resolve()))
  const kill = async (): Promise<void> => {
    const gone = new Promise((resolve) => void child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }
  return { url, startsIn, ready, kill }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

it('keeps leases exclusive and tokens growing when it is killed again and again under load', async () => {
  const state = join(temporaryFolder(), 'state.json')
  let server = await launch('127.0.0.1:0', state)
  const listen = server.url.replace('holdfast://', '')
  const recorders: Recorder[] = []
  let running = true
  const errors: unknown[] = []

  // All are quick but one, which keeps a lease for longer than a restart takes and does not ask meanwhile.
  const clients = Array.from({ length: 6 }, (_, number) => {
    const store = holdfastStore(server.url)
    const holdfast = new Holdfast(store, { ttl: 2500, patience: 1500, requestTimeout: 500 })
    const recorder = new Recorder(`client-${number}`)
    recorders.push(recorder)
    const work = async (): Promise<void> => {
      while (running) {
        const name = `lock-${number % 2}`
        const story = recorder.acquire(name)
        try {
          const lease = await holdfast.mutex(name).acquire({ wait: 8000 })
          story.acquired(lease)
          const until = performance.now() + (number === 4 ? 1500 : 5)
          while (lease.held && performance.now() < until) {
            await sleep(number === 4 ? 20 : 1)
            if (lease.held) story.check(lease)
          }
          if (!lease.held) story.lost()
          else story.releasing()
          story.released(await lease.release())
        } catch {
          story.failed()
        }
      }
    }
    const done = work().catch((error: unknown) => errors.push(error))
    return { store, holdfast, done }
  })

  const waits: number[] = []
  for (let round = 0; round < 2; round++) {
    await sleep(1200)
    await server.kill()
    server = await launch(listen, state)
    waits.push(server.startsIn)
    await server.ready
  }
  await sleep(700)
  running = false
  await Promise.all(clients.map(({ done }) => done))
  for (const { store, holdfast } of clients) {
    await holdfast.close()
    await store.close()
  }
  await server.kill()

  const events = recorders.flatMap((recorder) => recorder.events)
  const holds = holdsOf(events)
  expect(errors).toEqual([])
  // It was killed while leases were out, and waited them out, not for ever.
  for (const wait of waits) {
    expect(wait).toBeGreaterThan(500)
    expect(wait).toBeLessThan(10_000)
  }
  expect(holds.length).toBeGreaterThan(30)
  assertNone(checkExclusivity(holds))
  assertNone(checkTokenOrder(holds))
}, 60_000)
