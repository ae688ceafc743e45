import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { afterwards, call, portOf } from '../helpers.ts'
import { openSession } from './session.ts'
import { victim } from './victim.ts'

const MB = 1024 * 1024
/** docs/server.md says so. */
const MOST = 200 * MB
/** All of it by hand: HOLDFAST_CROWD=1. A tenth is enough to notice what has become dear. */
const SCALE = Number(process.env['HOLDFAST_CROWD'] ?? 0.1)
const CROWD = { silent: 5000 * SCALE, slowHeaders: 1000 * SCALE, slowBody: 1000 * SCALE, deaf: 1000 * SCALE }
/** Longer than slow clients have for their headers and deaf ones for their answers. */
const LASTS_MS = 14_000

interface Report {
  readonly ever: number
  readonly open: Readonly<Record<string, number>>
}

it('serves others, with little memory, while thousands of connections cost what they can', async () => {
  const { server, alive, memory } = await victim({}, 256)
  const session = await openSession(server)
  const crowd = fork(fileURLToPath(new URL('crowds.mjs', import.meta.url)), [
    String(portOf(server)),
    JSON.stringify(CROWD),
  ])
  afterwards(() => crowd.kill('SIGKILL'))
  let report: Report = { ever: 0, open: {} }
  crowd.on('message', (message: Report) => (report = message))
  const size = Object.values(CROWD).reduce((sum, one) => sum + one, 0)

  const times: number[] = []
  let most = 0
  for (let all = Infinity; performance.now() < all + LASTS_MS;) {
    if (all === Infinity && report.ever >= size) all = performance.now()
    const began = performance.now()
    const name = `job ${times.length}`
    const taken = await call(server, 'POST /v1/acquire', { body: { name, ttl: 600_000 } })
    expect(taken.status, taken.text).toBe(200)
    const { lease } = taken.body as unknown as { lease: string }
    expect((await call(server, 'POST /v1/release', { body: { name, lease } })).status).toBe(200)
    expect(await session.ask('ping', null)).toEqual({ kind: 'done' })
    times.push(performance.now() - began)
    most = Math.max(most, await memory())
  }
  times.sort((a, b) => a - b)
  if (process.env['HOLDFAST_CROWD'] !== undefined)
    console.log({
      ...report,
      rounds: times.length,
      p50: times[times.length >> 1],
      worst: times.at(-1),
      mb: most / MB,
    })
  expect(alive()).toBe(true)
  // How fast is a question of the machine: that all of them were answered is what counts.
  expect(times.length).toBeGreaterThan(5)
  expect(most).toBeLessThan(MOST)
}, 600_000)
