import { Worker } from 'node:worker_threads'

import { expect, it } from 'vitest'

import { startServer } from '../../src/server/index.ts'

const root = new URL('../../dist/index.js', import.meta.url).href

/** Takes the lock so many times, and counts what two threads at once would miscount. */
const PROGRAM = `
  import { workerData } from 'node:worker_threads'
  import { open } from '${root}'
  const { url, counter, rounds } = workerData
  const holdfast = await open(url)
  const count = new Int32Array(counter)
  for (let round = 0; round < rounds; round++) {
    await holdfast.mutex('counter').run(async () => {
      const seen = count[0]
      await new Promise((resolve) => setImmediate(resolve))
      count[0] = seen + 1
    })
  }
  await holdfast.close()`

it('a Holdfast per worker thread: threads exclude each other as processes do', async () => {
  const server = await startServer({ listen: '127.0.0.1:0' })
  try {
    const counter = new SharedArrayBuffer(4)
    const { url } = server
    const work = Array.from({ length: 4 }, () => {
      const program = new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`)
      const worker = new Worker(program, { workerData: { url, counter, rounds: 25 } })
      return new Promise<number>((resolve, reject) => worker.once('error', reject).once('exit', resolve))
    })
    expect(await Promise.all(work)).toEqual([0, 0, 0, 0])
    expect(new Int32Array(counter)[0]).toBe(100)
  } finally {
    await server.close()
  }
})

it('closeOn in a worker thread, which no signal reaches, says so', async () => {
  const program = `
    import { parentPort } from 'node:worker_threads'
    import { open } from '${root}'
    process.on('warning', ({ code }) => parentPort.postMessage(code))
    const holdfast = await open('memory:')
    holdfast.closeOn(['SIGTERM'])()`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`))
  const told: unknown[] = []
  worker.on('message', (code) => told.push(code))
  expect(await new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve))).toBe(0)
  expect(told).toEqual(['HOLDFAST_CLOSE_ON_THREAD'])
})
