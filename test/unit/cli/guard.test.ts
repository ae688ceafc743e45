import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Guard } from '../../../src/cli/guard.ts'

/** A command as holdfast starts it. */
function command(guard: Guard): ChildProcess {
  const [name, value] = guard.mark
  return spawn('sleep', ['60'], {
    detached: true,
    stdio: 'ignore',
    env: { PATH: '/usr/bin:/bin', [name]: value },
  })
}

it.skipIf(process.platform !== 'linux')(
  'kills in time what was started, though holdfast was stopped before it could say its group',
  async () => {
    const guard = new Guard(100)
    const child = command(guard)
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    guard.off()
  },
)

it('goes by the last word', async () => {
  const guard = new Guard(100)
  const child = command(guard)
  guard.protect(child.pid ?? 0)
  guard.fuse(60_000)
  await new Promise((resolve) => void setTimeout(resolve, 300))
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  guard.fuse(1)
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  guard.off()
})
