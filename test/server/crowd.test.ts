import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, eventually, look, portOf, serve, take } from './helpers.ts'

const CROWD = 10_000

it('serves others while ten thousand connections are idle or send a byte a second', async () => {
  const server = await serve({ limits: { maxWait: 600_000 } })
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  expect(await store.list({}, 5000)).toEqual({ names: [] })
  await take(server, { name: 'a', ttl: 600_000 })
  const waiting = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 600_000 } })
  await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === 1)

  const crowd = fork(fileURLToPath(new URL('crowd.mjs', import.meta.url)), [
    String(portOf(server)),
    String(CROWD),
  ])
  afterwards(() => crowd.kill('SIGKILL'))
  let ever = 0
  crowd.on('message', (message: { ever: number }) => (ever = message.ever))

  const times: number[] = []
  while (ever < CROWD) {
    const began = performance.now()
    const { status } = await call(server, 'GET /v1/locks/a')
    expect(status).toBe(200)
    expect(await store.inspect('a', 5000)).toMatchObject({ name: 'a' })
    times.push(performance.now() - began)
  }
  times.sort((a, b) => a - b)
  expect(times.length).toBeGreaterThan(10)
  // New connections, an old session and an old request: none of them was pushed out or starved.
  expect(times.at(Math.floor(times.length / 2))).toBeLessThan(1000)
  // Nobody new comes, and nobody goes by itself: it is the server that makes room.
  crowd.kill('SIGSTOP')
  await eventually('the silent ones are gone', async () => {
    const { text } = await call(server, 'GET /v1/metrics')
    return Number(/^holdfast_connections\{.*\} (\d+)$/m.exec(text)?.[1]) < 600
  })
  expect((await look(server, 'a')).waiters).toHaveLength(1)
  await call(server, 'POST /v1/force-release', { body: { name: 'a', reason: 'test' } })
  expect((await waiting).status).toBe(200)
}, 240_000)
